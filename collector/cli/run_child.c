/* SPDX-License-Identifier: Apache-2.0 */
/* Starting the traced command, passing signals on, waiting. */
#include "run_child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "run_witness.h"

/* Sent to us by somebody, they are meant for the command. */
static const int passed_on[] = {SIGHUP,  SIGINT,  SIGQUIT, SIGTERM,  SIGUSR1,
                                SIGUSR2, SIGALRM, SIGCONT, SIGWINCH, SIGURG};
/* The terminal's stop keys reach the command as well; we stop when it has stopped. */
static const int stop_keys[] = {SIGTSTP, SIGTTIN, SIGTTOU};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* What the caller had, to be given to the command unchanged. */
struct signal_state {
    sigset_t mask;
    struct sigaction stop_keys[COUNT(stop_keys)];
    struct sigaction child;
};

static void passed_on_set(sigset_t *set)
{
    sigemptyset(set);
    for (size_t i = 0; i < COUNT(passed_on); i++)
        sigaddset(set, passed_on[i]);
}

static void take_signals(struct signal_state *before)
{
    static const struct sigaction ignore = {.sa_handler = SIG_IGN};
    static const struct sigaction ordinary = {.sa_handler = SIG_DFL};
    sigset_t set;
    passed_on_set(&set);
    sigaddset(&set, SIGCHLD);
    sigprocmask(SIG_BLOCK, &set, &before->mask);
    for (size_t i = 0; i < COUNT(stop_keys); i++)
        sigaction(stop_keys[i], &ignore, &before->stop_keys[i]);
    /* Ignored, as some launchers leave it, the kernel would reap the command itself. */
    sigaction(SIGCHLD, &ordinary, &before->child);
}

static void give_signals_back(const struct signal_state *before)
{
    for (size_t i = 0; i < COUNT(stop_keys); i++)
        sigaction(stop_keys[i], &before->stop_keys[i], NULL);
    sigaction(SIGCHLD, &before->child, NULL);
    sigprocmask(SIG_SETMASK, &before->mask, NULL);
}

/* Starts the command; what its exec says comes back through a pipe that a successful exec closes.
 */
static int start(char **argv, const struct signal_state *before, pid_t *pid)
{
    int report[2], error = 0;
    if (pipe2(report, O_CLOEXEC) < 0)
        return -errno;
    *pid = fork();
    if (*pid == 0) {
        give_signals_back(before);
        execvp(argv[0], argv);
        error = errno;
        if (write(report[1], &error, sizeof error) < 0)
            _exit(RUN_NOT_FOUND);
        _exit(error == ENOENT ? RUN_NOT_FOUND : RUN_NOT_EXECUTABLE);
    }
    int fork_error = errno;
    close(report[1]);
    ssize_t bytes = *pid < 0 ? 0 : read(report[0], &error, sizeof error);
    close(report[0]);
    if (*pid < 0)
        return -fork_error;
    if (bytes != (ssize_t)sizeof error)
        return 0;
    run_child_reap(*pid);
    return -error;
}

/* Not of the terminal, nor of anybody who has reached the command as well. */
static bool is_for_us_alone(const siginfo_t *signal, const struct run_witness *witness)
{
    bool from_a_process =
        signal->si_code == SI_USER || signal->si_code == SI_QUEUE || signal->si_code == SI_TKILL;
    return from_a_process && !run_witness_saw(witness, signal->si_signo);
}

/* As pid 1 or under a subreaper, orphans of the command come to us: nobody else reaps them. */
static void reap_orphans(pid_t command, struct run_witness *witness)
{
    siginfo_t dead;
    for (;;) {
        dead.si_pid = 0;
        if (waitid(P_ALL, 0, &dead, WEXITED | WNOHANG | WNOWAIT | __WALL) < 0 || dead.si_pid == 0 ||
            dead.si_pid == command)
            return;
        if (dead.si_pid == witness->pid)
            run_witness_stop(witness);
        else
            waitpid(dead.si_pid, NULL, __WALL);
    }
}

/* True when the command is dead. When the terminal has stopped it, we stop until we are continued.
 */
static bool look_at(pid_t command)
{
    siginfo_t state = {.si_pid = 0};
    if (waitid(P_PID, (id_t)command, &state, WEXITED | WSTOPPED | WNOHANG | WNOWAIT) < 0)
        return errno != EINTR;
    if (state.si_pid == 0)
        return false;
    if (state.si_code != CLD_STOPPED)
        return true;
    waitid(P_PID, (id_t)command, &state, WSTOPPED | WNOHANG); /* seen */
    for (size_t i = 0; i < COUNT(stop_keys); i++)
        if (state.si_status == stop_keys[i])
            raise(SIGSTOP);
    return false;
}

int run_child(char **argv, pid_t *pid, void (*every_second)(void *context, pid_t pid),
              void *context)
{
    static const struct timespec second = {1, 0};
    struct signal_state before;
    struct run_witness witness;
    sigset_t set;
    take_signals(&before);
    passed_on_set(&set);
    run_witness_start(&witness, &set);
    int error = start(argv, &before, pid);
    sigaddset(&set, SIGCHLD);
    while (error == 0 && !look_at(*pid)) {
        siginfo_t got;
        int number = sigtimedwait(&set, &got, &second);
        if (number < 0 && errno == EAGAIN)
            every_second(context, *pid);
        else if (number == SIGCHLD)
            reap_orphans(*pid, &witness);
        else if (number > 0 && is_for_us_alone(&got, &witness))
            kill(*pid, number);
    }
    run_witness_stop(&witness);
    if (error < 0)
        give_signals_back(&before);
    return error;
}

int run_child_reap(pid_t pid)
{
    int status = 0;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        continue;
    return status;
}

_Noreturn void run_child_end_like(int status)
{
    static const struct rlimit no_core = {0, 0};
    if (WIFSIGNALED(status)) {
        int number = WTERMSIG(status);
        sigset_t only;
        setrlimit(RLIMIT_CORE, &no_core);
        prctl(PR_SET_DUMPABLE, 0); /* a core pattern that is a pipe heeds no limit */
        signal(number, SIG_DFL);
        sigemptyset(&only);
        sigaddset(&only, number);
        sigprocmask(SIG_UNBLOCK, &only, NULL);
        kill(getpid(), number);
        /* Still here: the first process of a container is spared. */
        exit(128 + number);
    }
    exit(WEXITSTATUS(status));
}
