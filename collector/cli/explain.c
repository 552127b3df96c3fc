/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vramscope explain: the verdict possible from a pasted message alone, without a trace.
 * The rooms are in explain/: a reader, one parser for each family of messages, the rules.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "commands.h"
#include "explain/print.h"
#include "trace_argument.h"

static const char help[] =
    "usage: vramscope explain [--json] [FILE]\n"
    "\n"
    "What a pasted out-of-memory message means, which numbers of it decide, what they cannot\n"
    "tell, and what to trace. Reads FILE, or what is piped or pasted in (end with Ctrl-D).\n"
    "\n"
    "Understood: PyTorch's message in every wording since 1.0 and on every device, its\n"
    "memory_summary() table and memory_stats(), nvidia-smi's page and lists, gpustat, JAX/XLA,\n"
    "TensorFlow's allocator dump, CuPy, RMM, llama.cpp/ggml, OneFlow, PaddlePaddle, XGBoost,\n"
    "CUDA.jl, ONNX Runtime, TensorRT, Triton, Faiss, the start of vLLM and SGLang, CUDA's and its\n"
    "libraries' bare errors, and the host's: /dev/shm, killed processes, pinned memory. Logs,\n"
    "colours, prefixes, wrapped lines and HTML around it do not matter; several messages: the\n"
    "first fatal one, else the last. A message and an nvidia-smi page in one paste are read\n"
    "together.\n"
    "\n"
    "  --json   for a program: schema vramscope-explain/1\n"
    "\n"
    "Exit status: 0 done, 1 nothing in it is understood or it could not be read, 2 usage.\n";

enum { READ_BYTES = 1 << 16 };

static int read_all(int file, struct paste *paste)
{
    char *buffer = malloc(READ_BYTES);
    if (buffer == NULL)
        return -ENOMEM;
    ssize_t got;
    paste_start(paste);
    while ((got = read(file, buffer, READ_BYTES)) != 0) {
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            break;
        paste_feed(paste, buffer, (size_t)got);
    }
    int status = got < 0 ? -errno : 0;
    paste_end(paste);
    free(buffer);
    return status;
}

/* "-" and no name are the standard input. */
static int read_paste(const char *path, struct paste *paste)
{
    bool standard = path == NULL || strcmp(path, "-") == 0;
    if (standard && isatty(STDIN_FILENO))
        fputs("vramscope explain: paste the message, then Ctrl-D\n", stderr);
    int file = standard ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return -errno;
    int status = read_all(file, paste);
    if (!standard)
        close(file);
    return status;
}

static int fail(const char *name, const char *what)
{
    fprintf(stderr, "vramscope explain: %s: %s\n", name, what);
    return CMD_FAILED;
}

/* Both are what one has after a failure; the name is easily the wrong one. */
static bool is_trace(const char *path)
{
    struct vs_reader *reader = NULL;
    struct vs_error error;
    bool is = path != NULL && vs_reader_open(path, &reader, &error) == 0;
    vs_reader_close(reader);
    return is;
}

static int explain(const char *path, bool json, struct paste *paste, struct verdict *verdict)
{
    const char *name = path == NULL || strcmp(path, "-") == 0 ? "standard input" : path;
    int status = read_paste(path, paste);
    if (status < 0)
        return fail(name,
                    status == -EISDIR ? "is a folder: give a file with the message"
                    : status == -ENOENT
                        ? "no such file: check the name, or paste the message into standard input"
                        : strerror(-status));
    if (!verdict_of(paste, verdict))
        return fail(name, paste->bytes == 0 ? "empty; paste an out-of-memory message"
                          : is_trace(path)
                              ? "is a trace, not a message: `vramscope report` reads it"
                              : "no out-of-memory message, memory summary or "
                                "nvidia-smi page is in it");
    if (json && !verdict_print_json(stdout, verdict))
        return fail("standard output", "could not be written");
    if (!json)
        verdict_print_page(stdout, verdict);
    return finish_output(CMD_DONE);
}

int cmd_explain(int argc, char **argv)
{
    bool json = false;
    const char *path;
    const struct option_rule rules[] = {{"--json", &json, NULL}};
    const struct command_words known = {
        .help = help, .rules = rules, .rule_count = 1, .argument = "file", .optional = true};
    int status = parse_words(argc, argv, &known, &path);
    if (status >= 0)
        return status;
    struct paste *paste = malloc(sizeof(*paste));
    struct verdict *verdict = malloc(sizeof(*verdict));
    status = CMD_FAILED;
    if (paste != NULL && verdict != NULL)
        status = explain(path, json, paste, verdict);
    else
        fail("no memory", strerror(ENOMEM));
    free(paste);
    free(verdict);
    return status;
}
