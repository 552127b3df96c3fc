/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `vramscope doctor` alone: is the installation whole, does a preload work here
 * at all, which CUDA libraries would a program find, what does the kernel
 * offer, may a trace be written in this folder. Each question is tried, not
 * guessed.
 */
#include "doctor_host.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "doctor_elf.h"
#include "doctor_proc.h"

#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif
#ifndef MFD_ALLOW_SEALING
#define MFD_ALLOW_SEALING 2U
#endif

enum { NEWEST_GLIBC_MINOR = 31 };

/* NAME in the folder of this executable, in ../lib, or in a
 * ../lib/ARCH-linux-gnu. */
int doctor_find_beside(const char *name, char *out, size_t bytes)
{
    static const char *const folders[] = {"", "../lib/", "../lib64/", "../lib/x86_64-linux-gnu/",
                                          "../lib/aarch64-linux-gnu/"};
    char self[PROC_PATH_BYTES];
    ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);
    if (length <= 0)
        return -ENOENT;
    self[length] = '\0';
    char *slash = strrchr(self, '/');
    if (slash != NULL)
        slash[1] = '\0';
    for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
        char path[2 * PROC_PATH_BYTES];
        snprintf(path, sizeof(path), "%s%s%s", self, folders[i], name);
        char *whole = access(path, R_OK) == 0 ? realpath(path, NULL) : NULL;
        if (whole == NULL)
            continue;
        bool fits = strlen(whole) < bytes;
        if (fits)
            memcpy(out, whole, strlen(whole) + 1);
        free(whole);
        return fits ? 0 : -ENAMETOOLONG;
    }
    return -ENOENT;
}

int doctor_find_shim(char *out, size_t bytes)
{
    return doctor_find_beside("libvramscope.so", out, bytes);
}

/* ---- the shim's file
 * ----------------------------------------------------------- */

static int check_needed(const char *name, void *context)
{
    static const char *const allowed[] = {"libc.so.6", "libdl.so.2", "libpthread.so.0"};
    for (size_t i = 0; i < sizeof(allowed) / sizeof(allowed[0]); i++)
        if (strcmp(name, allowed[i]) == 0)
            return 0;
    if (strncmp(name, "ld-linux", 8) != 0)
        doctor_fault(context, "the shim needs %s: a program without it would not start", name);
    return 0;
}

static int check_version(const char *version, void *context)
{
    int minor = 0;
    if (strcmp(version, "GLIBC_PRIVATE") == 0 ||
        (sscanf(version, "GLIBC_2.%d", &minor) == 1 && minor > NEWEST_GLIBC_MINOR))
        doctor_fault(context, "the shim needs %s: it does not load where glibc is 2.%d", version,
                     NEWEST_GLIBC_MINOR);
    return 0;
}

static int count_hook(const char *name, bool defined, void *context)
{
    *(unsigned *)context +=
        defined && name[0] == 'c' && name[1] == 'u' && strncmp(name, "cut", 3) != 0;
    return 0;
}

static int look_at_shim(struct doctor *doctor, const char *shim)
{
    struct elf_file file;
    unsigned hooks = 0;
    int error = elf_open(shim, &file);
    if (error != 0 || file.kind == ELF_NONE) {
        doctor_fault(doctor, "%s cannot be read: %s", shim, strerror(error < 0 ? -error : ENOEXEC));
        elf_close(&file);
        return -EINVAL;
    }
    unsigned before = doctor->faults;
    elf_each_needed(&file, check_needed, doctor);
    elf_each_version(&file, check_version, doctor);
    elf_each_symbol(&file, count_hook, &hooks);
    elf_close(&file);
    if (hooks == 0)
        doctor_fault(doctor, "%s exports no CUDA entry point: it is another library", shim);
    if (doctor->faults == before)
        doctor_ok(doctor, "shim %s: %u CUDA entry points, needs nothing but libc", shim, hooks);
    return 0;
}

/* ---- does a preload work?
 * -------------------------------------------------------- */

/* Runs a program with the shim preloaded. Its exit status (127: not started),
 * output into `out`. */
static int run_preloaded(const char *shim, char *const command[], char *out, size_t bytes)
{
    int ends[2];
    size_t used = 0;
    if (pipe(ends) != 0)
        return 127;
    pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], STDOUT_FILENO);
        dup2(ends[1], STDERR_FILENO);
        close(ends[0]);
        close(ends[1]);
        setenv("LD_PRELOAD", shim, 1);
        execvp(command[0], command);
        _exit(127);
    }
    close(ends[1]);
    for (ssize_t got; child > 0 && (got = read(ends[0], out + used, bytes - used - 1)) > 0;)
        used += (size_t)got;
    out[used] = '\0';
    close(ends[0]);
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) < 0)
        return 127;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void try_preload(struct doctor *doctor, const char *shim)
{
    char text[4096];
    char *quiet[] = {(char[]){"true"}, NULL};
    int status = run_preloaded(shim, quiet, text, sizeof(text));
    if (status != 0 || text[0] != '\0') {
        doctor_fault(doctor, "`true` with the shim preloaded ends with %d and says \"%.200s\"",
                     status, text);
        return;
    }
    static char maps[262144];
    char *look[] = {(char[]){"cat"}, (char[]){"/proc/self/maps"}, NULL};
    status = run_preloaded(shim, look, maps, sizeof(maps));
    if (status == 0 && strstr(maps, "libvramscope") == NULL)
        doctor_fault(doctor, "the loader ignores LD_PRELOAD here (the shim is not in a program "
                             "started with it): another C library, or a hardened loader?");
    else
        doctor_ok(doctor, "preloading works: `true` and `cat` run as without");
}

/* ---- CUDA's libraries
 * ------------------------------------------------------------ */

static void find_library(struct doctor *doctor, const char *name, const char *what)
{
    /* In a child: the library's constructors must not run in this process. */
    int ends[2];
    char path[PROC_PATH_BYTES] = "";
    if (pipe(ends) != 0)
        return;
    pid_t child = fork();
    if (child == 0) {
        void *library = dlopen(name, RTLD_LAZY | RTLD_LOCAL);
        Dl_info info;
        const char *symbol = strncmp(name, "libnvidia-ml", 12) == 0 ? "nvmlInit_v2"
                             : strncmp(name, "libcudart", 9) == 0   ? "cudaMalloc"
                                                                    : "cuInit";
        void *entry = library == NULL ? NULL : dlsym(library, symbol);
        if (entry != NULL && dladdr(entry, &info) != 0 && info.dli_fname != NULL)
            dprintf(ends[1], "%s", info.dli_fname);
        _exit(0);
    }
    close(ends[1]);
    ssize_t got = child < 0 ? 0 : read(ends[0], path, sizeof(path) - 1);
    close(ends[0]);
    if (child > 0)
        waitpid(child, NULL, 0);
    if (got > 0)
        doctor_ok(doctor, "%s: %s", what, path);
    else
        doctor_note(doctor, "%s: the loader finds no %s (a program may bring its own)", what, name);
}

static void find_cuda(struct doctor *doctor)
{
    find_library(doctor, "libcuda.so.1", "CUDA driver");
    find_library(doctor, "libcudart.so.13", "CUDA runtime 13");
    find_library(doctor, "libcudart.so.12", "CUDA runtime 12");
    find_library(doctor, "libnvidia-ml.so.1", "NVML (other processes' memory)");
}

/* ---- the kernel
 * ------------------------------------------------------------------- */

static void try_memfd(struct doctor *doctor)
{
    int fd = (int)syscall(SYS_memfd_create, "vramscope-doctor", MFD_ALLOW_SEALING);
    if (fd < 0) {
        doctor_fault(doctor,
                     "memfd_create: %s: there is no room for the ring; try "
                     "VRAMSCOPE_RING_AT=file",
                     strerror(errno));
        return;
    }
    void *page = ftruncate(fd, 4096) == 0
                     ? mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0)
                     : MAP_FAILED;
    if (page == MAP_FAILED)
        doctor_fault(doctor, "a memfd cannot be mapped: %s", strerror(errno));
    else
        doctor_ok(doctor, "memfd works");
    if (page != MAP_FAILED)
        munmap(page, 4096);
    close(fd);
}

static void try_pidfd(struct doctor *doctor)
{
#ifdef SYS_pidfd_open
    int fd = (int)syscall(SYS_pidfd_open, getpid(), 0);
    if (fd >= 0) {
        close(fd);
        doctor_ok(doctor, "pidfd works");
        return;
    }
#endif
    doctor_note(doctor, "no pidfd (kernel before 5.3, or a seccomp filter): the collector polls "
                        "/proc instead");
}

static void try_wipe_on_fork(struct doctor *doctor)
{
    void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED)
        return;
    if (madvise(page, 4096, MADV_WIPEONFORK) == 0)
        doctor_ok(doctor, "MADV_WIPEONFORK works: forks of every kind are noticed");
    else
        doctor_note(doctor, "no MADV_WIPEONFORK (%s): a raw fork system call is noticed late",
                    strerror(errno));
    munmap(page, 4096);
}

static void try_futex(struct doctor *doctor)
{
    uint32_t word = 0;
    struct timespec instant = {0, 1};
    long result = syscall(SYS_futex, &word, FUTEX_WAIT, 0, &instant, NULL, 0);
    if (result == 0 || errno == ETIMEDOUT || errno == EAGAIN || errno == EINTR)
        doctor_ok(doctor, "futex works");
    else
        doctor_fault(doctor, "futex: %s: the program cannot wake the collector", strerror(errno));
}

static void say_number(struct doctor *doctor, const char *path, const char *meaning)
{
    char text[64] = "";
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return;
    if (fgets(text, sizeof(text), file) != NULL)
        doctor_note(doctor, "%s: %.*s", meaning, (int)strcspn(text, "\n"), text);
    fclose(file);
}

static void look_at_limits(struct doctor *doctor)
{
    char line[256];
    FILE *file = fopen("/proc/self/status", "re");
    if (file == NULL) {
        doctor_fault(doctor, "/proc is not mounted: neither doctor nor the collector can look "
                             "at processes");
        return;
    }
    while (fgets(line, sizeof(line), file) != NULL) {
        int mode = 0;
        if (sscanf(line, "Seccomp: %d", &mode) == 1 && mode != 0)
            doctor_note(doctor, "a seccomp filter is active (mode %d), as in most containers",
                        mode);
        if (sscanf(line, "NoNewPrivs: %d", &mode) == 1 && mode != 0)
            doctor_note(doctor, "no new privileges: setuid programs keep their preload here");
    }
    fclose(file);
    say_number(doctor, "/proc/sys/kernel/yama/ptrace_scope",
               "ptrace scope (tracing does not need ptrace)");
}

static void look_at_kernel(struct doctor *doctor)
{
    struct utsname name;
    if (uname(&name) == 0)
        doctor_note(doctor, "%s %s, %s", name.sysname, name.release, name.machine);
    try_memfd(doctor);
    try_pidfd(doctor);
    try_futex(doctor);
    try_wipe_on_fork(doctor);
    look_at_limits(doctor);
}

/* ---- other tools
 * ------------------------------------------------------------- */

static void look_at_nvtx(struct doctor *doctor)
{
    const char *tool = getenv("NVTX_INJECTION64_PATH");
    if (tool != NULL && strstr(tool, "libvramscope.so") == NULL)
        doctor_note(doctor,
                    "NVTX_INJECTION64_PATH is set: NVTX's ranges go to %s, not into the trace",
                    tool);
}

/* ---- where traces go
 * ------------------------------------------------------------- */

static void look_at_output(struct doctor *doctor)
{
    const char *pattern = getenv("VRAMSCOPE_OUTPUT");
    char folder[PROC_PATH_BYTES] = ".";
    const char *slash = pattern == NULL ? NULL : strrchr(pattern, '/');
    if (slash != NULL)
        snprintf(folder, sizeof(folder), "%.*s", (int)(slash - pattern) + 1, pattern);
    /* A folder with a placeholder in its name depends on the program. */
    if (strchr(folder, '%') != NULL) {
        doctor_note(doctor, "traces go to %s, which depends on the program", folder);
        return;
    }
    int fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    bool writable = fd >= 0 || ((errno == EOPNOTSUPP || errno == EISDIR || errno == EINVAL) &&
                                access(folder, W_OK | X_OK) == 0);
    if (writable)
        doctor_ok(doctor, "traces can be written to %s", slash == NULL ? "this folder" : folder);
    else
        doctor_fault(doctor, "no trace can be written to %s: %s; give `vramscope run -o FOLDER/`",
                     slash == NULL ? "this folder" : folder, strerror(errno));
    if (fd >= 0)
        close(fd);
}

int doctor_host(struct doctor *doctor)
{
    char shim[PROC_PATH_BYTES];
    char collector[PROC_PATH_BYTES];
    if (doctor_find_shim(shim, sizeof(shim)) != 0) {
        doctor_fault(doctor, "libvramscope.so is not beside this program (bin/ and lib/ of one "
                             "folder): install or build again");
    } else if (look_at_shim(doctor, shim) == 0) {
        try_preload(doctor, shim);
    }
    if (doctor_find_beside("vramscope-collector", collector, sizeof(collector)) != 0 ||
        access(collector, X_OK) != 0)
        doctor_fault(doctor, "vramscope-collector is not beside this program: nothing would be "
                             "written");
    else
        doctor_ok(doctor, "collector %s", collector);
    find_cuda(doctor);
    look_at_kernel(doctor);
    look_at_nvtx(doctor);
    look_at_output(doctor);
    return 0;
}
