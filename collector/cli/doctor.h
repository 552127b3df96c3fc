/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rooms of `vramscope doctor`. Everything it says comes from traces, from
 * ELF files and from /proc; nothing is asked of a running program.
 *
 *   doctor.c        arguments, the lines on the screen
 *   doctor_host.c   alone: what this machine and this installation can do
 *   doctor_run.c    -- CMD: watch it run, then read its traces
 *   doctor_hooks.c  what a trace says of each hook
 *   doctor_pid.c    --pid N: a process that runs already
 *   doctor_elf.c    what an object file needs, exports and asks for
 *   doctor_proc.c   what a process has mapped, and why the shim is not there
 */
#ifndef VS_CLI_DOCTOR_H
#define VS_CLI_DOCTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* ---- doctor.c: one finding, one line ----------------------------------------
 */

struct doctor {
    unsigned faults;
    bool all; /* --all: also what is usual */
};

/* All is well; a fact; something that keeps memory events from being recorded
 * (exit status 1). */
void doctor_ok(struct doctor *doctor, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void doctor_note(struct doctor *doctor, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void doctor_fault(struct doctor *doctor, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Each returns 0, or a negative errno value when the question itself could not
 * be put. */
int doctor_host(struct doctor *doctor);
int doctor_run(struct doctor *doctor, char **command);
int doctor_pid(struct doctor *doctor, pid_t pid);

/* ---- doctor_elf.c
 * ------------------------------------------------------------ */

enum elf_kind { ELF_NONE, ELF_STATIC, ELF_DYNAMIC, ELF_LIBRARY };

struct elf_file {
    const unsigned char *bytes; /* the whole file, mapped */
    size_t size;
    bool is_64_bit;
    enum elf_kind kind;
};

/* Maps a file. 0, or a negative errno value; kind is ELF_NONE for what is no
 * ELF file. */
int elf_open(const char *path, struct elf_file *file);
void elf_close(struct elf_file *file);

/* For each name needed (DT_NEEDED); the visitor's non-zero result ends the walk
 * and is returned. */
int elf_each_needed(const struct elf_file *file, int (*visit)(const char *name, void *context),
                    void *context);
/* For each dynamic symbol; `defined`: the file has it, else it asks for it. */
int elf_each_symbol(const struct elf_file *file,
                    int (*visit)(const char *name, bool defined, void *context), void *context);
/* For each version needed of other libraries ("GLIBC_2.17"). */
int elf_each_version(const struct elf_file *file, int (*visit)(const char *version, void *context),
                     void *context);
/* Is the text anywhere in the file? */
bool elf_holds(const struct elf_file *file, const char *text);
/* Does the file define (or ask for) this dynamic symbol? */
bool elf_has_symbol(const struct elf_file *file, const char *name, bool defined);

/* ---- doctor_proc.c
 * ------------------------------------------------------------ */

enum { PROC_MAX_LIBRARIES = 24, PROC_PATH_BYTES = 512 };

/* What /proc says of a process at one moment. */
struct proc_image {
    pid_t pid, parent;
    uint64_t start_ticks; /* since boot: tells a reused pid apart */
    char executable[PROC_PATH_BYTES];
    bool shim_mapped;
    bool libc_mapped;  /* the loader has come past what is preloaded */
    bool silent;       /* its end sends no signal: a clone on its way to become our collector */
    bool preload_set;  /* our shim's name is in LD_PRELOAD of its environment */
    bool environ_seen; /* its environment could be read */
    bool maps_seen;    /* its mappings could be read */
    bool disabled;     /* VRAMSCOPE_DISABLE is set */
    bool device_open;  /* a GPU, or the simulated one, is mapped: CUDA is started */
    bool secure;       /* runs with other rights than its caller: the loader drops
                          preloads */
    size_t library_count;
    char libraries[PROC_MAX_LIBRARIES][PROC_PATH_BYTES]; /* CUDA's own, as mapped */
};

/* 0, or a negative errno value (-ESRCH: gone, or a kernel thread). */
int proc_read(pid_t pid, struct proc_image *image);
/* Why the shim is not in a process, in words; NULL when it is, or when nothing
 * speaks against it.
 */
const char *proc_why_not(const struct proc_image *image);
/* Calls `visit` for each process below `root`, itself included. */
void proc_each_below(pid_t root, void (*visit)(pid_t pid, void *context), void *context);
/* Is the file name one of CUDA's libraries (driver, runtime, NVML, those that
 * carry a runtime)? */
bool proc_is_cuda_library(const char *path);

/* ---- doctor_hooks.c
 * ------------------------------------------------------------ */

/* Reads every trace in a folder and says what took effect. Returns the number
 * of traces. */
int doctor_hooks(struct doctor *doctor, const char *folder, const char *shim);
/* Says which hooks have nothing to stand before in the libraries a program
 * loaded (NULL: none). */
void doctor_unresolved(struct doctor *doctor, const char *shim, const char *driver,
                       const char *runtime);

/* ---- doctor_host.c
 * ------------------------------------------------------------- */

/* The shim beside this executable (installed or in the build folder). 0 or
 * -ENOENT. */
int doctor_find_shim(char *out, size_t bytes);
int doctor_find_beside(const char *name, char *out, size_t bytes);

#endif
