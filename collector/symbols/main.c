/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vramscope-symbolizer: names for addresses, as symbol_wire.h says. Started by
 * the collector and by `vramscope symbolize`, never by a person.
 *
 *   vramscope-symbolizer [--background] [FOLDER …]
 *
 * --background: lowest priority, small memory, dies with who started it.
 */
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "demangle.h"
#include "symbols.h"

#ifndef SYS_close_range
#define SYS_close_range 436 /* of every architecture */
#endif

#define CHANNEL STDIN_FILENO
#define BACKGROUND_DATA_BYTES (DEMANGLE_STACK_BYTES + (144UL << 20))
#define DATA_BYTES (2UL << 30)
#define CLOSE_ABOVE_BYTES (64UL << 20)
#define DROP_ABOVE_BYTES (48UL << 20)
#define LEAST_PRIORITY 19

struct work {
    struct symbols *symbols;
    _Alignas(8) uint8_t request[SYMBOL_REQUEST_BYTES + 1]; /* and a zero behind the path */
    uint8_t answer[SYMBOL_ANSWER_BYTES];
    struct symbol_text frames[SYMBOL_FRAMES_MAX];
};

static struct work work;

/* ---- what we may use --------------------------------------------------------------------- */

static void close_all_but_standard(void)
{
    if (syscall(SYS_close_range, 3U, ~0U, 0U) == 0)
        return;
    long most = sysconf(_SC_OPEN_MAX);
    for (int fd = 3; fd < (most > 0 && most < 65536 ? (int)most : 65536); fd++)
        close(fd);
}

/* A sanitizer's own memory counts as ours. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { LIMIT_DATA = 0 };
#else
enum { LIMIT_DATA = 1 };
#endif

static void limit(int resource, rlim_t most)
{
    struct rlimit now;
    if (getrlimit(resource, &now) == 0 && now.rlim_cur > most) {
        now.rlim_cur = now.rlim_max = most;
        setrlimit(resource, &now);
    }
}

static void settle(bool background)
{
    close_all_but_standard();
    unsetenv("DEBUGINFOD_URLS"); /* libdw would ask the network */
    limit(RLIMIT_CORE, 0);
    if (LIMIT_DATA)
        limit(RLIMIT_DATA, background ? BACKGROUND_DATA_BYTES : DATA_BYTES);
    if (!background)
        return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setpriority(PRIO_PROCESS, 0, LEAST_PRIORITY);
}

/* Resident bytes: our own, and of the files that are mapped. */
static void read_memory(unsigned long *own, unsigned long *files)
{
    unsigned long resident = 0, shared = 0, page = (unsigned long)sysconf(_SC_PAGESIZE);
    FILE *file = fopen("/proc/self/statm", "re");
    if (file != NULL && fscanf(file, "%*u %lu %lu", &resident, &shared) != 2)
        resident = shared = 0;
    if (file != NULL)
        fclose(file);
    *files = shared * page;
    *own = resident > shared ? (resident - shared) * page : 0;
}

static void stay_small(void)
{
    unsigned long own, files;
    read_memory(&own, &files);
    if (own > CLOSE_ABOVE_BYTES) {
        symbols_close_all(work.symbols);
        malloc_trim(0);
    }
    if (files > DROP_ABOVE_BYTES)
        symbols_drop_pages(work.symbols);
}

/* ---- answering --------------------------------------------------------------------------- */

static uint8_t *put(uint8_t *at, const void *data, size_t bytes)
{
    memcpy(at, data, bytes);
    return at + bytes;
}

static int send_answer(uint64_t address, enum symbol_status status, uint32_t count)
{
    struct symbol_answer head = {address, status, count};
    uint8_t *at = put(work.answer, &head, sizeof head);
    for (uint32_t i = 0; i < count; i++) {
        const struct symbol_text *frame = &work.frames[i];
        at = put(at, &frame->line, sizeof frame->line);
        at = put(at, frame->function, strlen(frame->function) + 1);
        at = put(at, frame->file, strlen(frame->file) + 1);
    }
    size_t bytes = (size_t)(at - work.answer);
    ssize_t sent;
    do
        sent = send(CHANNEL, work.answer, bytes, MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    return sent == (ssize_t)bytes ? 0 : -EPIPE;
}

/* False for a request that makes no sense: then we stop, and who asked starts another. */
static bool answer_request(size_t bytes)
{
    struct symbol_request head;
    if (bytes < sizeof head)
        return false;
    memcpy(&head, work.request, sizeof head);
    if (head.address_count > SYMBOL_ADDRESSES_MAX || head.build_id_bytes > SYMBOL_BUILD_ID_BYTES ||
        bytes - sizeof head != head.address_count * sizeof(uint64_t) + head.path_bytes)
        return false;
    const uint8_t *addresses = work.request + sizeof head;
    work.request[bytes] = 0;
    struct module_name name = {.path =
                                   (const char *)addresses + head.address_count * sizeof(uint64_t),
                               .build_id_bytes = head.build_id_bytes};
    memcpy(name.build_id, head.build_id, sizeof name.build_id);
    for (uint32_t i = 0; i < head.address_count; i++) {
        uint64_t address;
        uint32_t count;
        memcpy(&address, addresses + i * sizeof address, sizeof address);
        enum symbol_status status =
            symbols_find(work.symbols, &name, head.plain != 0, address, work.frames, &count);
        if (send_answer(address, status, count) != 0)
            return false;
        stay_small();
    }
    return true;
}

static void *serve(void *unused)
{
    static const struct symbol_hello hello = {SYMBOL_WIRE_VERSION};
    (void)unused;
    if (send(CHANNEL, &hello, sizeof hello, MSG_NOSIGNAL) != (ssize_t)sizeof hello)
        return NULL;
    ssize_t bytes;
    do
        bytes = recv(CHANNEL, work.request, SYMBOL_REQUEST_BYTES, 0);
    while ((bytes < 0 && errno == EINTR) || (bytes > 0 && answer_request((size_t)bytes)));
    return NULL;
}

/* On a stack of a size of our own: deep names are taken apart by recursion. */
static int serve_on_large_stack(void)
{
    pthread_attr_t attributes;
    pthread_t thread;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, DEMANGLE_STACK_BYTES);
    int error = pthread_create(&thread, &attributes, serve, NULL);
    pthread_attr_destroy(&attributes);
    return error != 0 ? -error : -pthread_join(thread, NULL);
}

int main(int argc, char **argv)
{
    bool background = argc > 1 && strcmp(argv[1], "--background") == 0;
    settle(background);
    work.symbols = symbols_new((const char *const *)argv + (background ? 2 : 1));
    if (work.symbols == NULL)
        return EXIT_FAILURE;
    if (serve_on_large_stack() != 0)
        serve(NULL);
    _exit(EXIT_SUCCESS); /* nothing to tidy up: the system does it faster */
}
