/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vramscope env: lines that switch recording on where programs are started by something
 * else: a job script, a container, a cluster. Each way of starting has one function here.
 */
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "commands.h"
#include "env_text.h"
#include "run_preload.h"

static const char usage_text[] =
    "usage: vramscope env [-o PATTERN] [--torchrun | --slurm | --ray | --docker | --k8s |\n"
    "                     --apptainer]\n"
    "\n"
    "Prints lines that record programs which are not started by `vramscope run`. Settings\n"
    "of your environment (VRAMSCOPE_STACKS=…) go along.\n"
    "\n"
    "  (nothing)    for a shell: eval \"$(vramscope env)\"\n"
    "  --torchrun   for a shell script that calls torchrun\n"
    "  --slurm      for a batch script that calls srun\n"
    "  --ray        Python: the runtime environment of ray.init()\n"
    "  --docker     a docker run command\n"
    "  --k8s        YAML, to be merged into a pod's specification\n"
    "  --apptainer  for a shell script that calls apptainer (or singularity)\n"
    "  -o, --output PATTERN\n"
    "               where the traces go, as for `vramscope run` (vramscope-traces/)\n"
    "\n"
    "Exit status: 0 done, 1 it could not, 2 usage.\n";

#define IN_CONTAINER "/opt/vramscope"
#define TRACES_IN_CONTAINER "/vramscope-traces"
#define DEFAULT_OUTPUT "vramscope-traces/"

struct place {
    char shim[PATH_MAX];   /* of this installation */
    char prefix[PATH_MAX]; /* with bin/ in it */
    char folder[PATH_MAX]; /* of the traces, absolute, without a '/' at its end */
    char name[PATH_MAX];   /* the file name's pattern, or empty */
};

struct target {
    const char *option;
    void (*print)(const struct place *place);
};

/* ---- shells ----------------------------------------------------------------------- */

static void print_exports(const struct place *place)
{
    struct env_settings settings;
    env_settings_find(&settings);
    for (size_t i = 0; i < settings.count; i++) {
        printf("export %s=", settings.name[i]);
        env_put_shell(stdout, settings.value[i]);
        putchar('\n');
    }
    fputs("export VRAMSCOPE_OUTPUT=", stdout);
    env_put_shell_path(stdout, place->folder, "/", place->name);
    fputs("\nexport LD_PRELOAD=", stdout);
    env_put_shell(stdout, place->shim);
    puts("${LD_PRELOAD:+:$LD_PRELOAD}");
}

static void print_folder(const struct place *place)
{
    fputs("mkdir -p ", stdout);
    env_put_shell(stdout, place->folder);
    putchar('\n');
}

static void print_shell(const struct place *place)
{
    print_folder(place);
    print_exports(place);
}

static void print_torchrun(const struct place *place)
{
    puts(
        "# Before torchrun, on every node. Its workers inherit these; each rank that touches CUDA\n"
        "# gets a trace with its rank in the name, torchrun itself at most an empty one without.");
    print_shell(place);
}

static void print_slurm(const struct place *place)
{
    puts("# In the batch script, before srun. This path and the folder must be the same on all "
         "nodes.\n"
         "# srun hands all variables on, unless it is called with --export=NONE or a list of its "
         "own:\n"
         "# then add ALL to that list. A step's end kills everything in it: what the program did "
         "in\n"
         "# its last quarter of a second may be missing, without VRAMSCOPE_RING_AT=file.");
    print_shell(place);
}

/* ---- Ray --------------------------------------------------------------------------- */

static void print_ray(const struct place *place)
{
    struct env_settings settings;
    env_settings_find(&settings);
    puts("# Where ray.init() is called. The paths must be the same on all nodes. Ray sets these "
         "variables\n"
         "# before it starts a worker. Or, for everything on a node: before `ray start` there, the "
         "lines\n"
         "# of `vramscope env`.\n"
         "import os\n"
         "import ray\n");
    fputs("preload = ", stdout);
    env_put_quoted(stdout, place->shim, "", "");
    puts(" + \":\" + os.environ.get(\"LD_PRELOAD\", \"\")");
    puts("ray.init(runtime_env={\"env_vars\": {\n"
         "    \"LD_PRELOAD\": preload.rstrip(\":\"),");
    for (size_t i = 0; i < settings.count; i++) {
        printf("    \"%s\": ", settings.name[i]);
        env_put_quoted(stdout, settings.value[i], "", "");
        puts(",");
    }
    fputs("    \"VRAMSCOPE_OUTPUT\": ", stdout);
    env_put_quoted(stdout, place->folder, "/", place->name);
    puts(",\n}})");
}

/* ---- containers ------------------------------------------------------------------------ */

static const char *const parts[] = {"vramscope", "vramscope-collector", "vramscope-symbolizer"};
enum { PARTS = sizeof parts / sizeof parts[0] };

static void print_docker(const struct place *place)
{
    struct env_settings settings;
    char path[2 * PATH_MAX];
    env_settings_find(&settings);
    print_folder(place);
    puts("# `vramscope run` inside keeps what the image has in LD_PRELOAD. The image needs glibc.\n"
         "docker run --gpus all \\");
    for (size_t i = 0; i < PARTS; i++) {
        snprintf(path, sizeof path, "%s/bin/%s:" IN_CONTAINER "/bin/%s:ro", place->prefix, parts[i],
                 parts[i]);
        fputs("    --volume ", stdout);
        env_put_shell(stdout, path);
        puts(" \\");
    }
    snprintf(path, sizeof path, "%s:" IN_CONTAINER "/lib/" RUN_SHIM_NAME ":ro", place->shim);
    fputs("    --volume ", stdout);
    env_put_shell(stdout, path);
    snprintf(path, sizeof path, "%s:" TRACES_IN_CONTAINER, place->folder);
    fputs(" \\\n    --volume ", stdout);
    env_put_shell(stdout, path);
    puts(" \\");
    for (size_t i = 0; i < settings.count; i++) {
        printf("    --env %s=", settings.name[i]);
        env_put_shell(stdout, settings.value[i]);
        puts(" \\");
    }
    fputs("    IMAGE " IN_CONTAINER "/bin/vramscope run -o ", stdout);
    env_put_shell_path(stdout, TRACES_IN_CONTAINER, "/", place->name);
    puts(" -- COMMAND");
}

static void print_yaml_variable(const char *name, const char *value, const char *between,
                                const char *rest)
{
    printf("        - name: %s\n          value: ", name);
    env_put_quoted(stdout, value, between, rest);
    putchar('\n');
}

static void print_k8s(const struct place *place)
{
    struct env_settings settings;
    env_settings_find(&settings);
    puts("# Merge into the pod's specification. On each node " IN_CONTAINER
         " holds vramscope's unpacked\n"
         "# .tar.gz. A variable set here replaces the image's own: where the image sets "
         "LD_PRELOAD,\n"
         "# write its value behind ours, after a colon.\n"
         "spec:\n"
         "  containers:\n"
         "    - name: CONTAINER\n"
         "      env:");
    print_yaml_variable("LD_PRELOAD", IN_CONTAINER "/lib/" RUN_SHIM_NAME, "", "");
    for (size_t i = 0; i < settings.count; i++)
        print_yaml_variable(settings.name[i], settings.value[i], "", "");
    print_yaml_variable("VRAMSCOPE_OUTPUT", TRACES_IN_CONTAINER, "/", place->name);
    puts("      volumeMounts:\n"
         "        - name: vramscope\n"
         "          mountPath: " IN_CONTAINER "\n"
         "          readOnly: true\n"
         "        - name: vramscope-traces\n"
         "          mountPath: " TRACES_IN_CONTAINER "\n"
         "  volumes:\n"
         "    - name: vramscope\n"
         "      hostPath:\n"
         "        path: " IN_CONTAINER "\n"
         "        type: Directory\n"
         "    - name: vramscope-traces\n"
         "      hostPath:");
    fputs("        path: ", stdout);
    env_put_quoted(stdout, place->folder, "", "");
    puts("\n        type: DirectoryOrCreate");
}

static void print_apptainer(const struct place *place)
{
    struct env_settings settings;
    char path[2 * PATH_MAX];
    env_settings_find(&settings);
    puts("# Before apptainer exec --nv (or run). singularity reads these names too. The image "
         "needs glibc.\n"
         "# An LD_PRELOAD of the image's own is replaced: put it into APPTAINERENV_LD_PRELOAD "
         "before.");
    print_folder(place);
    fputs("export APPTAINER_BIND=${APPTAINER_BIND:+$APPTAINER_BIND,}", stdout);
    for (size_t i = 0; i < PARTS; i++) {
        snprintf(path, sizeof path, "%s/bin/%s:" IN_CONTAINER "/bin/%s:ro,", place->prefix,
                 parts[i], parts[i]);
        env_put_shell(stdout, path);
    }
    snprintf(path, sizeof path, "%s:" IN_CONTAINER "/lib/" RUN_SHIM_NAME ":ro,", place->shim);
    env_put_shell(stdout, path);
    env_put_shell_path(stdout, place->folder, ":", TRACES_IN_CONTAINER);
    putchar('\n');
    for (size_t i = 0; i < settings.count; i++) {
        printf("export APPTAINERENV_%s=", settings.name[i]);
        env_put_shell(stdout, settings.value[i]);
        putchar('\n');
    }
    fputs("export APPTAINERENV_VRAMSCOPE_OUTPUT=", stdout);
    env_put_shell_path(stdout, TRACES_IN_CONTAINER, "/", place->name);
    puts("\nexport APPTAINERENV_LD_PRELOAD=" IN_CONTAINER "/lib/" RUN_SHIM_NAME
         "${APPTAINERENV_LD_PRELOAD:+:$APPTAINERENV_LD_PRELOAD}");
}

/* ---- the command ------------------------------------------------------------------------- */

static const struct target targets[] = {
    {"torchrun", print_torchrun}, {"slurm", print_slurm}, {"ray", print_ray},
    {"docker", print_docker},     {"k8s", print_k8s},     {"apptainer", print_apptainer},
};
enum { TARGETS = sizeof targets / sizeof targets[0], LETTER_OUTPUT = 'o', LETTER_HELP = 'h' };
enum { FIRST_TARGET = 256 };

static int find_installation(struct place *place)
{
    if (run_find_shim(place->shim, sizeof place->shim) < 0) {
        fputs("vramscope env: " RUN_SHIM_NAME " is not beside this vramscope (../lib): "
              "build or install it again\n",
              stderr);
        return CMD_FAILED;
    }
    /* A blank or a colon ends an entry of LD_PRELOAD, a comma one of a list of mounts. */
    if (strpbrk(place->shim, " :,")) {
        fprintf(stderr,
                "vramscope env: LD_PRELOAD and mounts cannot hold a path with a blank, a colon or "
                "a comma: move %s elsewhere\n",
                place->shim);
        return CMD_FAILED;
    }
    return env_program_prefix(place->prefix, sizeof place->prefix) < 0 ? CMD_FAILED : CMD_DONE;
}

/* The folder of the traces and the rest of the pattern. */
static int split_output(const char *output, struct place *place)
{
    char here[PATH_MAX];
    if (!getcwd(here, sizeof here)) {
        fprintf(stderr, "vramscope env: where this is cannot be told: %s\n", strerror(errno));
        return CMD_FAILED;
    }
    const char *slash = strrchr(output, '/');
    int folder_bytes = slash ? (int)(slash - output) : 0;
    int bytes = output[0] == '/'
                    ? snprintf(place->folder, sizeof place->folder, "%.*s", folder_bytes, output)
                    : snprintf(place->folder, sizeof place->folder, "%s%s%.*s", here,
                               folder_bytes ? "/" : "", folder_bytes, output);
    int name_bytes = snprintf(place->name, sizeof place->name, "%s", slash ? slash + 1 : output);
    if (bytes >= (int)sizeof place->folder || name_bytes >= (int)sizeof place->name) {
        fputs("vramscope env: the path of --output is too long\n", stderr);
        return CMD_FAILED;
    }
    if (bytes == 0 || strpbrk(place->folder, ":,%")) {
        fprintf(stderr,
                "vramscope env: --output %s: the traces need a folder of their own, without a "
                "colon, a comma or a %% in its name\n",
                output);
        return CMD_USAGE;
    }
    return CMD_DONE;
}

static int bad_usage(const char *what, const char *which)
{
    fprintf(stderr, "vramscope env: %s%s; `vramscope env --help` says how\n", what, which);
    return CMD_USAGE;
}

/* CMD_DONE with what to print; `help`: was asked for. */
static int read_options(int argc, char **argv, const struct target **target, const char **output,
                        bool *help)
{
    struct option known[TARGETS + 3];
    for (int i = 0; i < TARGETS; i++)
        known[i] = (struct option){targets[i].option, no_argument, NULL, FIRST_TARGET + i};
    known[TARGETS] = (struct option){"output", required_argument, NULL, LETTER_OUTPUT};
    known[TARGETS + 1] = (struct option){"help", no_argument, NULL, LETTER_HELP};
    known[TARGETS + 2] = (struct option){NULL, 0, NULL, 0};
    optind = 1;
    opterr = 0;
    for (int letter; (letter = getopt_long(argc, argv, "o:h", known, NULL)) != -1;) {
        if (letter == LETTER_HELP)
            *help = true;
        else if (letter == LETTER_OUTPUT)
            *output = optarg;
        else if (letter < FIRST_TARGET)
            return bad_usage("no such option, or its value is missing: ", argv[optind - 1]);
        else if (*target)
            return bad_usage("one way at a time, not also --", known[letter - FIRST_TARGET].name);
        else
            *target = &targets[letter - FIRST_TARGET];
    }
    return optind < argc ? bad_usage("it takes no argument: ", argv[optind]) : CMD_DONE;
}

int cmd_env(int argc, char **argv)
{
    const struct target *target = NULL;
    const char *output = getenv("VRAMSCOPE_OUTPUT");
    struct place place;
    bool help = false;
    if (!output || !*output)
        output = DEFAULT_OUTPUT;
    int status = read_options(argc, argv, &target, &output, &help);
    if (status == CMD_DONE && help) {
        fputs(usage_text, stdout);
        return CMD_DONE;
    }
    if (status == CMD_DONE)
        status = find_installation(&place);
    if (status == CMD_DONE)
        status = split_output(output, &place);
    if (status == CMD_DONE)
        (target ? target->print : print_shell)(&place);
    return status;
}
