/* SPDX-License-Identifier: Apache-2.0 */
/* The asking side of symbol_wire.h: see symbol_client.h. */
#include "symbol_client.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PROGRAM "vramscope-symbolizer"
#define FOLDERS_MAX 32U
#define PATIENCE_MS 15000U
#define HELLO_MS 5000U
#define CANCEL_LOOK_MS 100 /* how soon `cancelled` is noticed */
#define STARTS_MAX 8U
#define FAILURES_FOR_PLAIN 2U /* of one module: its debug information is left alone then */
#define FAILURES_FOR_SKIP 3U
#define NS_PER_MS 1000000ULL

static uint64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / NS_PER_MS;
}

void symbol_client_init(struct symbol_client *client, const char *const *folders)
{
    *client = (struct symbol_client){.folders = folders,
                                     .patience_ms = PATIENCE_MS,
                                     .starts_left = STARTS_MAX,
                                     .pid = -1,
                                     .fd = -1};
    ssize_t bytes = readlink("/proc/self/exe", client->program, sizeof client->program - 1);
    client->program[bytes > 0 ? bytes : 0] = 0;
    char *slash = strrchr(client->program, '/');
    size_t folder = slash ? (size_t)(slash - client->program) + 1 : 0;
    if (folder + sizeof PROGRAM <= sizeof client->program)
        memcpy(client->program + folder, PROGRAM, sizeof PROGRAM);
}

static void stop(struct symbol_client *client)
{
    if (client->fd >= 0)
        close(client->fd);
    client->fd = -1;
    if (client->pid < 0)
        return;
    kill(client->pid, SIGKILL);
    while (waitpid(client->pid, NULL, 0) < 0 && errno == EINTR)
        continue;
    client->pid = -1;
}

void symbol_client_close(struct symbol_client *client)
{
    stop(client);
}

/* ---- messages ------------------------------------------------------------------------- */

/* Waits for the symbolizer's next message. Its bytes, or a negative errno value: -EPIPE it ended,
 * -ETIMEDOUT, -ECANCELED. */
static ssize_t receive(struct symbol_client *client, unsigned patience_ms)
{
    uint64_t until = now_ms() + patience_ms;
    struct pollfd channel = {.fd = client->fd, .events = POLLIN};
    for (;;) {
        if (atomic_load(&client->cancelled))
            return -ECANCELED;
        uint64_t now = now_ms();
        if (now >= until)
            return -ETIMEDOUT;
        int wait = until - now < CANCEL_LOOK_MS ? (int)(until - now) : CANCEL_LOOK_MS;
        int ready = poll(&channel, 1, wait);
        if (ready < 0 && errno != EINTR)
            return -errno;
        if (ready <= 0)
            continue;
        ssize_t bytes = recv(client->fd, client->message, sizeof client->message, MSG_DONTWAIT);
        if (bytes > 0)
            return bytes;
        if (bytes == 0 || (errno != EINTR && errno != EAGAIN))
            return -EPIPE;
    }
}

static int send_request(struct symbol_client *client, const struct symbol_module *module,
                        const uint64_t *addresses, uint32_t count)
{
    uint8_t request[SYMBOL_REQUEST_BYTES];
    size_t path_bytes = strlen(module->path);
    struct symbol_request head = {.address_count = count,
                                  .plain = module->failures >= FAILURES_FOR_PLAIN,
                                  .path_bytes = (uint32_t)path_bytes,
                                  .build_id_bytes = module->build_id_bytes};
    memcpy(head.build_id, module->build_id, sizeof head.build_id);
    memcpy(request, &head, sizeof head);
    memcpy(request + sizeof head, addresses, count * sizeof *addresses);
    memcpy(request + sizeof head + count * sizeof *addresses, module->path, path_bytes);
    size_t bytes = sizeof head + count * sizeof *addresses + path_bytes;
    /* It has answered all before: there is room, or it is no longer there. */
    return send(client->fd, request, bytes, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)bytes ? 0
                                                                                           : -EPIPE;
}

/* ---- starting --------------------------------------------------------------------------- */

static int launch(struct symbol_client *client, int its_end)
{
    const char *arguments[FOLDERS_MAX + 3] = {PROGRAM};
    const char *library_path = getenv("LD_LIBRARY_PATH");
    char library_setting[PATH_MAX + 32];
    char *environment[] = {NULL, NULL};
    size_t count = 1;
    if (client->background)
        arguments[count++] = "--background";
    for (size_t i = 0; client->folders[i] != NULL && i < FOLDERS_MAX; i++)
        arguments[count++] = client->folders[i];
    /* Nothing else: neither the network's settings nor the program's. */
    if (library_path != NULL && strlen(library_path) < PATH_MAX) {
        snprintf(library_setting, sizeof library_setting, "LD_LIBRARY_PATH=%s", library_path);
        environment[0] = library_setting;
    }
    posix_spawn_file_actions_t actions;
    int error = posix_spawn_file_actions_init(&actions);
    if (error != 0)
        return -error;
    error = posix_spawn_file_actions_adddup2(&actions, its_end, STDIN_FILENO);
    if (error == 0)
        error = posix_spawn(&client->pid, client->program, &actions, NULL,
                            (char *const *)(uintptr_t)arguments, environment);
    posix_spawn_file_actions_destroy(&actions);
    if (error != 0)
        client->pid = -1;
    return -error;
}

static bool said_hello(struct symbol_client *client, ssize_t bytes)
{
    struct symbol_hello hello;
    if (bytes != (ssize_t)sizeof hello)
        return false;
    memcpy(&hello, client->message, sizeof hello);
    return hello.version == SYMBOL_WIRE_VERSION;
}

static int start(struct symbol_client *client)
{
    int ends[2];
    if (client->starts_left == 0)
        return -ECONNABORTED;
    client->starts_left--;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
        return -errno;
    int error = launch(client, ends[1]);
    close(ends[1]);
    client->fd = ends[0];
    ssize_t bytes = error == 0 ? receive(client, HELLO_MS) : error;
    if (bytes == -ECANCELED || error != 0)
        error = (int)bytes;
    else if (!said_hello(client, bytes))
        error = -ELIBACC;
    if (error != 0) {
        stop(client);
        client->starts_left = 0; /* the next time would be no better */
    }
    return error;
}

/* ---- asking ------------------------------------------------------------------------------ */

/* Points into the message. -EBADMSG when it makes no sense. */
static int read_frames(const uint8_t *at, const uint8_t *end, uint32_t count,
                       struct vs_symbol_frame *frames)
{
    for (uint32_t i = 0; i < count; i++) {
        if ((size_t)(end - at) < sizeof frames[i].line)
            return -EBADMSG;
        memcpy(&frames[i].line, at, sizeof frames[i].line);
        at += sizeof frames[i].line;
        const uint8_t *function_end = memchr(at, 0, (size_t)(end - at));
        const uint8_t *file = function_end == NULL ? end : function_end + 1;
        const uint8_t *file_end = memchr(file, 0, (size_t)(end - file));
        if (file_end == NULL)
            return -EBADMSG;
        frames[i].function = (const char *)at;
        frames[i].file = (const char *)file;
        at = file_end + 1;
    }
    return at == end ? 0 : -EBADMSG;
}

static int take_answer(struct symbol_client *client, ssize_t bytes, uint64_t address,
                       symbol_client_answer *answer, void *context)
{
    struct symbol_answer head;
    struct vs_symbol_frame frames[SYMBOL_FRAMES_MAX];
    if (bytes < (ssize_t)sizeof head)
        return -EBADMSG;
    memcpy(&head, client->message, sizeof head);
    if (head.address != address || head.status > SYMBOL_UNREADABLE ||
        head.frame_count > SYMBOL_FRAMES_MAX ||
        (head.frame_count > 0) != (head.status == SYMBOL_FOUND) ||
        read_frames(client->message + sizeof head, client->message + bytes, head.frame_count,
                    frames) != 0)
        return -EBADMSG;
    answer(context, address, (enum symbol_status)head.status, frames, head.frame_count);
    return 0;
}

/* One request. Returns how many were answered before something went wrong, or all; *error says
 * what it was. */
static uint32_t ask_once(struct symbol_client *client, const struct symbol_module *module,
                         const uint64_t *addresses, uint32_t count, symbol_client_answer *answer,
                         void *context, int *error)
{
    uint32_t done = 0;
    *error = send_request(client, module, addresses, count);
    while (done < count && *error == 0) {
        ssize_t bytes = receive(client, client->patience_ms);
        *error =
            bytes < 0 ? (int)bytes : take_answer(client, bytes, addresses[done], answer, context);
        done += *error == 0;
    }
    return done;
}

int symbol_client_ask(struct symbol_client *client, struct symbol_module *module,
                      const uint64_t *addresses, uint32_t count, symbol_client_answer *answer,
                      void *context)
{
    if (strlen(module->path) >= PATH_MAX || count > SYMBOL_ADDRESSES_MAX)
        return -EINVAL;
    uint32_t done = 0;
    while (done < count) {
        if (module->failures >= FAILURES_FOR_SKIP) {
            answer(context, addresses[done++], SYMBOL_SKIPPED, NULL, 0);
            continue;
        }
        int error = client->pid < 0 ? start(client) : 0;
        if (error != 0)
            return error;
        done += ask_once(client, module, addresses + done, count - done, answer, context, &error);
        if (error == 0)
            continue;
        stop(client);
        if (error == -ECANCELED)
            return error;
        /* It answers in order: the first without an answer is the one it failed at. */
        module->failures++;
        answer(context, addresses[done++], SYMBOL_FAILED, NULL, 0);
    }
    return 0;
}

const char *symbol_client_error(int error)
{
    switch (error) {
    case -ENOENT:
        return "vramscope-symbolizer is not beside this program (it needs libdw-dev and "
               "libiberty-dev when vramscope is built)";
    case -ELIBACC:
        return "vramscope-symbolizer does not start: is libdw1 installed?";
    case -ECONNABORTED:
        return "vramscope-symbolizer failed too often";
    default:
        return strerror(-error);
    }
}

const char *symbol_status_text(enum symbol_status status)
{
    static const char *const texts[SYMBOL_STATUSES] = {
        [SYMBOL_FOUND] = "named",
        [SYMBOL_NOTHING_KNOWN] = "no symbol there",
        [SYMBOL_NO_FILE] = "file not found",
        [SYMBOL_OTHER_BUILD] = "another build is there",
        [SYMBOL_UNREADABLE] = "file not readable",
        [SYMBOL_FAILED] = "the symbolizer crashed or hung",
        [SYMBOL_SKIPPED] = "left out after crashes",
    };
    return status < SYMBOL_STATUSES ? texts[status] : "unknown";
}
