/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `vramscope doctor -- CMD`: runs CMD as `vramscope run` does, watches its
 * processes through /proc meanwhile, then reads what was recorded. A process
 * that lives shorter than the time between two looks may be missed: its trace
 * is not.
 */
#include "doctor_run.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "commands.h"
#include "doctor_elf.h"
#include "doctor_hooks.h"
#include "doctor_host.h"
#include "doctor_proc.h"

enum { MAX_IMAGES = 512, LOOK_FIRST_MS = 5, LOOK_LATER_MS = 50, LOOKS_EARLY = 100 };

struct watch {
    struct proc_image *images;
    size_t count;
    pid_t starter; /* the process that plays `vramscope run`: not CMD's */
    bool full;
};

static bool same_image(const struct proc_image *a, const struct proc_image *b)
{
    return a->pid == b->pid && a->start_ticks == b->start_ticks &&
           strcmp(a->executable, b->executable) == 0;
}

static void keep_image(struct watch *watch, const struct proc_image *now)
{
    for (size_t i = 0; i < watch->count; i++) {
        if (!same_image(&watch->images[i], now))
            continue;
        bool richer = now->library_count >= watch->images[i].library_count;
        bool device_open = watch->images[i].device_open || now->device_open;
        if (richer && now->maps_seen)
            watch->images[i] = *now;
        watch->images[i].device_open = device_open;
        return;
    }
    watch->full = watch->count == MAX_IMAGES;
    if (!watch->full)
        watch->images[watch->count++] = *now;
}

static bool is_ours(const char *executable)
{
    const char *name = strrchr(executable, '/');
    name = name == NULL ? executable : name + 1;
    return strcmp(name, "vramscope") == 0 || strcmp(name, "vramscope-collector") == 0;
}

static void look_at(pid_t pid, void *context)
{
    static struct proc_image image;
    if (proc_read(pid, &image) == 0 && image.maps_seen && !image.silent &&
        !is_ours(image.executable))
        keep_image(context, &image);
}

/* The command line of `vramscope run` around CMD. NULL without memory. */
static char **run_arguments(char *folder, char **command, int *count)
{
    size_t length = 0;
    while (command[length] != NULL)
        length++;
    char **arguments = calloc(length + 5, sizeof(*arguments));
    if (arguments == NULL)
        return NULL;
    *count = 0;
    arguments[(*count)++] = (char *)(uintptr_t) "run";
    arguments[(*count)++] = (char *)(uintptr_t) "-o";
    arguments[(*count)++] = folder;
    arguments[(*count)++] = (char *)(uintptr_t) "--";
    for (size_t i = 0; i < length; i++)
        arguments[(*count)++] = command[i];
    return arguments;
}

/* Starts `vramscope run` in a child. Its pid, or a negative errno value. */
static pid_t start(char *folder, char **command)
{
    int count;
    char **arguments = run_arguments(folder, command, &count);
    if (arguments == NULL)
        return -ENOMEM;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        setenv("VRAMSCOPE_LOG", "error", 0); /* its summary would name a folder that goes away */
        setenv("VRAMSCOPE_STACKS", "python", 0); /* to learn whether they can be had */
        int status = cmd_run(count, arguments);
        fflush(NULL);
        _exit(status);
    }
    int error = errno;
    free(arguments);
    return child < 0 ? -error : child;
}

/* Watches until the child has ended; its wait status. */
static int watch_until_end(struct watch *watch)
{
    int status = 0;
    for (unsigned looks = 0;; looks++) {
        long pause_ms = looks < LOOKS_EARLY ? LOOK_FIRST_MS : LOOK_LATER_MS;
        pid_t ended = waitpid(watch->starter, &status, WNOHANG);
        if (ended == watch->starter || (ended < 0 && errno != EINTR))
            return status;
        proc_each_below(watch->starter, look_at, watch);
        nanosleep(&(struct timespec){0, pause_ms * 1000000L}, NULL);
    }
}

static void say_image(struct doctor *doctor, const struct proc_image *image)
{
    const char *why = proc_why_not(image);
    if (image->shim_mapped && image->disabled)
        doctor_fault(doctor, "%s (%ld): VRAMSCOPE_DISABLE is set", image->executable,
                     (long)image->pid);
    else if (why != NULL && image->library_count > 0)
        doctor_fault(doctor, "%s (%ld) uses CUDA but %s", image->executable, (long)image->pid, why);
    else if (why != NULL)
        doctor_note(doctor, "%s (%ld) was not traced: it %s", image->executable, (long)image->pid,
                    why);
    else if (doctor->all || image->library_count > 0)
        doctor_note(doctor, "%s (%ld): shim loaded, %zu CUDA libraries", image->executable,
                    (long)image->pid, image->library_count);
    for (size_t i = 0; i < image->library_count; i++)
        doctor_note(doctor, "  with %s", image->libraries[i]);
}

/* Why not a single trace came to be. */
static void explain_nothing(struct doctor *doctor, const struct watch *watch)
{
    size_t with_cuda = 0;
    size_t with_device = 0;
    size_t without_shim = 0;
    for (size_t i = 0; i < watch->count; i++) {
        with_cuda += watch->images[i].library_count > 0;
        with_device += watch->images[i].device_open;
        without_shim += proc_why_not(&watch->images[i]) != NULL;
    }
    if (without_shim > 0)
        doctor_fault(doctor, "no trace: %zu process%s ran without the shim (above)", without_shim,
                     without_shim == 1 ? "" : "es");
    else if (with_device > 0)
        doctor_fault(doctor,
                     "no trace although %zu process%s opened a GPU: no call came past a hook",
                     with_device, with_device == 1 ? "" : "es");
    else if (with_cuda > 0)
        doctor_note(doctor, "CUDA libraries were loaded, but no process was seen to open a GPU: "
                            "there was no device memory to trace");
    else
        doctor_note(doctor, "no process loaded a CUDA library: there was no device "
                            "memory to trace");
}

/* The first library of a name that any process had. */
static const char *mapped_library(const struct watch *watch, const char *name)
{
    for (size_t i = 0; i < watch->count; i++) {
        for (size_t j = 0; j < watch->images[i].library_count; j++) {
            const char *path = watch->images[i].libraries[j];
            const char *slash = strrchr(path, '/');
            if (strncmp(slash == NULL ? path : slash + 1, name, strlen(name)) == 0)
                return path;
        }
    }
    return NULL;
}

/* The static program's or script's reasons are in its file, however short it
 * lived. */
static void look_at_command(struct doctor *doctor, const char *command)
{
    struct elf_file file;
    char path[PROC_PATH_BYTES * 2];
    const char *folders = strchr(command, '/') != NULL ? "" : getenv("PATH");
    snprintf(path, sizeof(path), "%s", command);
    for (const char *rest = folders; rest != NULL && *rest != '\0';) {
        size_t length = strcspn(rest, ":");
        snprintf(path, sizeof(path), "%.*s/%s", (int)length, rest, command);
        if (access(path, X_OK) == 0)
            break;
        rest += length + (rest[length] == ':');
    }
    if (elf_open(path, &file) != 0)
        return;
    if (file.kind != ELF_NONE && !file.is_64_bit)
        doctor_fault(doctor, "%s is a 32-bit program: the 64-bit shim cannot be loaded", path);
    else if (file.kind == ELF_STATIC)
        doctor_fault(doctor, "%s is statically linked: nothing can be preloaded into it", path);
    elf_close(&file);
}

static void remove_folder(const char *folder)
{
    DIR *listing = opendir(folder);
    for (struct dirent *entry; listing != NULL && (entry = readdir(listing)) != NULL;) {
        char path[PROC_PATH_BYTES * 2];
        snprintf(path, sizeof(path), "%s%s", folder, entry->d_name);
        if (entry->d_name[0] != '.')
            unlink(path);
    }
    if (listing != NULL)
        closedir(listing);
    rmdir(folder);
}

static void say_status(struct doctor *doctor, const char *command, int status)
{
    if (WIFSIGNALED(status))
        doctor_note(doctor, "%s ended by signal %d", command, WTERMSIG(status));
    else if (WEXITSTATUS(status) == 127)
        doctor_fault(doctor, "%s could not be started", command);
    else
        doctor_note(doctor, "%s ended with status %d", command, WEXITSTATUS(status));
}

int doctor_run(struct doctor *doctor, char **command)
{
    const char *base = getenv("TMPDIR");
    char folder[PROC_PATH_BYTES];
    char shim[PROC_PATH_BYTES];
    if (doctor_find_shim(shim, sizeof(shim)) != 0) {
        doctor_fault(doctor, "libvramscope.so is not beside this program: install or build again");
        return 0;
    }
    snprintf(folder, sizeof(folder), "%.400s/vramscope-doctor-XXXXXX",
             base != NULL && base[0] == '/' ? base : "/tmp");
    if (mkdtemp(folder) == NULL)
        return -errno;
    strcat(folder, "/");
    struct watch watch = {.images = calloc(MAX_IMAGES, sizeof(struct proc_image))};
    int error = -ENOMEM;
    if (watch.images == NULL)
        goto out;
    signal(SIGINT, SIG_IGN); /* CMD gets the terminal's; what was recorded is still read */
    watch.starter = start(folder, command);
    error = watch.starter < 0 ? (int)watch.starter : 0;
    if (error != 0)
        goto out;
    say_status(doctor, command[0], watch_until_end(&watch));
    look_at_command(doctor, command[0]);
    for (size_t i = 0; i < watch.count; i++)
        say_image(doctor, &watch.images[i]);
    if (watch.full)
        doctor_note(doctor, "more than %d programs were started: only the first ones were watched",
                    MAX_IMAGES);
    if (doctor_hooks(doctor, folder, shim) == 0)
        explain_nothing(doctor, &watch);
    else
        doctor_unresolved(doctor, shim, mapped_library(&watch, "libcuda.so"),
                          mapped_library(&watch, "libcudart.so"));
out:
    free(watch.images);
    remove_folder(folder);
    return error;
}
