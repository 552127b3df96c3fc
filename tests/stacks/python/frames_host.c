/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that loads Python late, runs a script in it, shuts it down, and does
 * so again: host LAB LIBPYTHON SCRIPT ROUNDS. Exit status 0: all as it should be.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

enum { STATE_NONE = 0, STATE_READY = 1, STATE_FINALIZED = 3 };

static struct {
    void (*prepare)(void);
    int (*state)(void);
    int (*is_missing)(void);
    int (*count_here)(int *note);
} lab;

static struct {
    void (*initialize)(int signals);
    int (*run)(const char *source);
    int (*finalize)(void);
} python;

static int failures;

static void expect(const char *what, int ok)
{
    if (!ok) {
        printf("FAILED %s\n", what);
        failures++;
    }
}

static void *must(void *pointer)
{
    if (pointer == NULL) {
        printf("FAILED %s\n", dlerror());
        exit(2);
    }
    return pointer;
}

static void expect_nothing(const char *when)
{
    int note;
    int count = lab.count_here(&note);
    expect(when, count == 0 && note == 0);
}

static void run_once(const char *script)
{
    char source[4096];
    snprintf(source, sizeof(source), "exec(compile(open(%s%s%s).read(), %s%s%s, 'exec'))", "'",
             script, "'", "'", script, "'");
    python.initialize(0);
    lab.prepare();
    expect("script", python.run(source) == 0);
    expect("ready", lab.state() == STATE_READY);
    python.finalize();
    expect("finalized", lab.state() == STATE_FINALIZED);
    expect_nothing("after the end");
}

int main(int argc, char **argv)
{
    if (argc != 5) {
        return 2;
    }
    void *library = must(dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL));
    *(void **)&lab.prepare = must(dlsym(library, "frames_prepare"));
    *(void **)&lab.state = must(dlsym(library, "frames_state"));
    *(void **)&lab.is_missing = must(dlsym(library, "frames_is_missing"));
    *(void **)&lab.count_here = must(dlsym(library, "frames_count_here"));
    lab.prepare();
    expect("no Python yet", lab.state() == STATE_NONE && lab.is_missing());
    expect_nothing("without Python");

    void *interpreter = must(dlopen(argv[2], RTLD_NOW | RTLD_GLOBAL));
    *(void **)&python.initialize = must(dlsym(interpreter, "Py_InitializeEx"));
    *(void **)&python.run = must(dlsym(interpreter, "PyRun_SimpleString"));
    *(void **)&python.finalize = must(dlsym(interpreter, "Py_FinalizeEx"));
    lab.prepare();
    expect("found", lab.state() == STATE_READY);
    expect_nothing("before it begins");
    for (int round = 0; round < atoi(argv[4]); round++) {
        run_once(argv[3]);
    }
    return failures != 0;
}
