/* SPDX-License-Identifier: Apache-2.0 */
/* Several processes: shared capacity, sharing memory, forks, deaths. */
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "driver_test.h"

static int expect_exit(pid_t child)
{
    int status = -1;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(process_forked_children_may_not_use_cuda)
{
    START();
    int count;
    pid_t child = fork();
    if (child == 0)
        _exit(cuDeviceGetCount(&count) == CUDA_ERROR_NOT_INITIALIZED &&
                      cuInit(0) == CUDA_ERROR_NOT_INITIALIZED
                  ? 0
                  : 1);
    EXPECT_EQ(expect_exit(child), 0);
    child = (pid_t)syscall(SYS_fork);
    if (child == 0)
        _exit(cuDeviceGetCount(&count) == CUDA_ERROR_NOT_INITIALIZED ? 0 : 1);
    EXPECT_EQ(expect_exit(child), 0);
    EXPECT_EQ(test_used(), 0); /* their ends gave nothing of ours back */
}

TEST(process_fork_before_use_is_fine)
{
    pid_t child = fork();
    if (child == 0) {
        START();
        exit(test_used() == 0 ? 0 : 1);
    }
    EXPECT_EQ(expect_exit(child), 0);
}

/* Starts a child with the devices shared; it runs BODY with pipes to and from the parent. */
struct partner {
    pid_t pid;
    int to;
    int from;
};

static struct partner start_partner(void (*body)(int in, int out))
{
    int down[2];
    int up[2];
    EXPECT_EQ(pipe(down) | pipe(up), 0);
    pid_t pid = fork();
    if (pid == 0) {
        close(down[1]);
        close(up[0]);
        body(down[0], up[1]);
        exit(0);
    }
    close(down[0]);
    close(up[1]);
    return (struct partner){pid, down[1], up[0]};
}

static void say(int fd)
{
    EXPECT_EQ(write(fd, "x", 1), 1);
}

static void hear(int fd)
{
    char byte;
    EXPECT_EQ(read(fd, &byte, 1), 1);
}

static void hold_memory(int in, int out)
{
    CUdeviceptr memory;
    START();
    OK(cuMemAlloc(&memory, 10 * GIB));
    say(out);
    hear(in);
}

TEST(process_devices_are_shared)
{
    CUdeviceptr memory;
    test_share_state();
    struct partner partner = start_partner(hold_memory);
    hear(partner.from);
    START();
    EXPECT_EQ(test_used(), 10 * GIB + 300 * MIB);
    EXPECT_EQ(cuMemAlloc(&memory, 70 * GIB), CUDA_ERROR_OUT_OF_MEMORY);
    say(partner.to);
    EXPECT_EQ(expect_exit(partner.pid), 0);
    EXPECT_EQ(test_used(), 0);
    OK(cuMemAlloc(&memory, 70 * GIB));
}

TEST(process_killed_gives_all_back)
{
    CUdeviceptr memory;
    test_share_state();
    struct partner partner = start_partner(hold_memory);
    hear(partner.from);
    START();
    EXPECT_EQ(test_used(), 10 * GIB + 300 * MIB);
    kill(partner.pid, SIGKILL);
    waitpid(partner.pid, NULL, 0);
    OK(cuMemAlloc(&memory, 79 * GIB));
    EXPECT_EQ(test_used(), 79 * GIB);
}

static void storm(int in, int out)
{
    CUdeviceptr memory[64] = {0};
    START();
    say(out);
    (void)in;
    for (unsigned i = 0;; i++) {
        if (memory[i % 64])
            OK(cuMemFree(memory[i % 64]));
        OK(cuMemAlloc(&memory[i % 64], (i % 7 + 1) * 300 * KIB));
    }
}

TEST(process_killed_at_any_moment)
{
    test_share_state();
    START();
    for (int i = 0; i < 30; i++) {
        int down[2];
        EXPECT_EQ(pipe(down), 0);
        pid_t child = fork();
        if (child == 0) { /* a process of its own: the parent's driver is not for it */
            char fd[16];
            snprintf(fd, sizeof fd, "%d", down[1]);
            setenv("SIMGPU_TEST_OUT", fd, 1);
            setenv("SIMGPU_TEST_DIRECT", "1", 1);
            execl("/proc/self/exe", "simgpu_driver_test", "helper_storm", (char *)NULL);
            _exit(127);
        }
        close(down[1]);
        hear(down[0]);
        usleep(1000U + (unsigned)i * 137U);
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
        close(down[0]);
        EXPECT_EQ(test_used(), 0);
    }
}

TEST(helper_storm)
{
    const char *out = getenv("SIMGPU_TEST_OUT");
    if (out)
        storm(-1, atoi(out));
}

static void open_handle(int in, int out)
{
    CUipcMemHandle handle;
    CUdeviceptr memory;
    CUdeviceptr again;
    START();
    EXPECT_EQ(read(in, &handle, sizeof handle), (ssize_t)sizeof handle);
    EXPECT_EQ(cuIpcOpenMemHandle(&memory, handle, 0), CUDA_ERROR_INVALID_VALUE);
    OK(cuIpcOpenMemHandle(&memory, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
    OK(cuIpcOpenMemHandle(&again, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
    EXPECT_EQ(again, memory);
    EXPECT_EQ(((char *)(uintptr_t)memory)[99], 42);
    OK(cuMemsetD8(memory, 43, 100));
    EXPECT_EQ(cuMemFree(memory), CUDA_ERROR_INVALID_VALUE);
    OK(cuIpcCloseMemHandle(memory));
    OK(cuIpcCloseMemHandle(memory));
    EXPECT_EQ(cuIpcCloseMemHandle(memory), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(simgpu_device_used(0), 602 * MIB); /* two contexts, one chunk */
    say(out);
}

TEST(process_ipc_shares_bytes)
{
    CUdeviceptr memory;
    CUipcMemHandle handle;
    test_share_state();
    struct partner partner = start_partner(open_handle);
    START();
    OK(cuMemAlloc(&memory, 100));
    OK(cuMemsetD8(memory, 42, 100));
    OK(cuIpcGetMemHandle(&handle, memory));
    CUdeviceptr own;
    EXPECT_EQ(cuIpcOpenMemHandle(&own, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS),
              CUDA_ERROR_INVALID_CONTEXT);
    EXPECT_EQ(write(partner.to, &handle, sizeof handle), (ssize_t)sizeof handle);
    hear(partner.from);
    EXPECT_EQ(expect_exit(partner.pid), 0);
    EXPECT_EQ(((char *)(uintptr_t)memory)[99], 43);
}

TEST(process_ipc_refuses_mapped_and_pooled_memory)
{
    CUmemGenericAllocationHandle handle;
    CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
    CUipcMemHandle ipc;
    CUdeviceptr range;
    START();
    OK(cuMemCreate(&handle, 2 * MIB, &prop, 0));
    OK(cuMemAddressReserve(&range, 2 * MIB, 0, 0, 0));
    OK(cuMemMap(range, 2 * MIB, 0, handle, 0));
    EXPECT_EQ(cuIpcGetMemHandle(&ipc, range), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemAllocAsync(&range, 100, NULL));
    EXPECT_EQ(cuIpcGetMemHandle(&ipc, range), CUDA_ERROR_INVALID_VALUE);
}

static void send_fd(int socket, int fd)
{
    char control[CMSG_SPACE(sizeof fd)] = {0};
    char byte = 'x';
    struct iovec data = {&byte, 1};
    struct msghdr message = {.msg_iov = &data,
                             .msg_iovlen = 1,
                             .msg_control = control,
                             .msg_controllen = sizeof control};
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof fd);
    memcpy(CMSG_DATA(header), &fd, sizeof fd);
    EXPECT_EQ(sendmsg(socket, &message, 0), 1);
}

static int receive_fd(int socket)
{
    int fd = -1;
    char control[CMSG_SPACE(sizeof fd)];
    char byte;
    struct iovec data = {&byte, 1};
    struct msghdr message = {.msg_iov = &data,
                             .msg_iovlen = 1,
                             .msg_control = control,
                             .msg_controllen = sizeof control};
    EXPECT_EQ(recvmsg(socket, &message, 0), 1);
    memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof fd);
    return fd;
}

static CUdeviceptr map_all(CUmemGenericAllocationHandle handle, size_t bytes)
{
    CUdeviceptr range;
    CUmemAccessDesc access = {.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE},
                              .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    OK(cuMemAddressReserve(&range, bytes, 0, 0, 0));
    OK(cuMemMap(range, bytes, 0, handle, 0));
    OK(cuMemSetAccess(range, bytes, &access, 1));
    return range;
}

static int sockets[2];

static void import_memory(int in, int out)
{
    CUmemGenericAllocationHandle handle;
    START();
    int fd = receive_fd(sockets[1]);
    OK(cuMemImportFromShareableHandle(&handle, (void *)(intptr_t)fd,
                                      CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
    CUdeviceptr range = map_all(handle, 8 * MIB);
    EXPECT_EQ(*(char *)(uintptr_t)range, 11);
    *(char *)(uintptr_t)range = 12;
    say(out);
    hear(in); /* the exporter has released it meanwhile */
    EXPECT_EQ(*(char *)(uintptr_t)range, 12);
    EXPECT_EQ(test_used(), 300 * MIB + 8 * MIB);
    OK(cuMemUnmap(range, 8 * MIB));
    OK(cuMemRelease(handle));
    EXPECT_EQ(test_used(), 300 * MIB);
}

TEST(process_exported_memory_lives_with_its_last_holder)
{
    CUmemGenericAllocationHandle handle;
    CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                .requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                                .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
    int fd = -1;
    test_share_state();
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets), 0);
    struct partner partner = start_partner(import_memory);
    START();
    OK(cuMemCreate(&handle, 8 * MIB, &prop, 0));
    CUdeviceptr range = map_all(handle, 8 * MIB);
    *(char *)(uintptr_t)range = 11;
    OK(cuMemExportToShareableHandle(&fd, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    send_fd(sockets[0], fd);
    close(fd);
    hear(partner.from);
    EXPECT_EQ(*(volatile char *)(uintptr_t)range, 12);
    OK(cuMemUnmap(range, 8 * MIB));
    OK(cuMemRelease(handle));
    EXPECT_EQ(test_used(), 300 * MIB + 8 * MIB);
    say(partner.to);
    EXPECT_EQ(expect_exit(partner.pid), 0);
    EXPECT_EQ(test_used(), 0);
}
