/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm_shared.h"

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define SITE __attribute__((noinline)) static
#define PIECE ((size_t)64 << 20)

enum { PIECES = 4 };

static void need(int result, const char *what)
{
    if (result != 0) {
        fprintf(stderr, "%s returned %d\n", what, result);
        _Exit(3);
    }
}
#define NEED(call) need((int)(call), #call)

/* One byte, with a descriptor. */
struct message {
    struct msghdr header;
    struct iovec data;
    char byte;
    _Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int))];
};

static void prepare(struct message *message)
{
    memset(message, 0, sizeof(*message));
    message->data = (struct iovec){&message->byte, 1};
    message->header = (struct msghdr){.msg_iov = &message->data,
                                      .msg_iovlen = 1,
                                      .msg_control = message->control,
                                      .msg_controllen = sizeof(message->control)};
}

static void send_descriptor(int to, int descriptor)
{
    struct message message;
    prepare(&message);
    struct cmsghdr *part = CMSG_FIRSTHDR(&message.header);
    part->cmsg_level = SOL_SOCKET;
    part->cmsg_type = SCM_RIGHTS;
    part->cmsg_len = CMSG_LEN(sizeof(descriptor));
    memcpy(CMSG_DATA(part), &descriptor, sizeof(descriptor));
    NEED(sendmsg(to, &message.header, 0) != 1);
}

static int receive_descriptor(int from)
{
    struct message message;
    int descriptor = -1;
    prepare(&message);
    NEED(recvmsg(from, &message.header, 0) != 1);
    memcpy(&descriptor, CMSG_DATA(CMSG_FIRSTHDR(&message.header)), sizeof(descriptor));
    return descriptor;
}

static CUdeviceptr map_piece(CUmemGenericAllocationHandle piece)
{
    CUdeviceptr range;
    CUmemAccessDesc access = {.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE},
                              .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    NEED(cuMemAddressReserve(&range, PIECE, 0, 0, 0));
    NEED(cuMemMap(range, PIECE, 0, piece, 0));
    NEED(cuMemSetAccess(range, PIECE, &access, 1));
    return range;
}

static void give_back(CUdeviceptr range, CUmemGenericAllocationHandle piece)
{
    NEED(cuMemUnmap(range, PIECE));
    NEED(cuMemAddressFree(range, PIECE));
    NEED(cuMemRelease(piece));
}

static CUmemGenericAllocationHandle make_piece(void)
{
    CUmemAllocationProp wanted = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                  .requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                                  .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
    CUmemGenericAllocationHandle piece;
    NEED(cudaFree(NULL));
    NEED(cuMemCreate(&piece, PIECE, &wanted, 0));
    return piece;
}

SITE void export_piece(int to, CUmemGenericAllocationHandle piece)
{
    int descriptor = -1;
    NEED(cuMemExportToShareableHandle(&descriptor, piece, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                                      0));
    send_descriptor(to, descriptor);
    close(descriptor);
}

SITE CUmemGenericAllocationHandle import_piece(int from)
{
    CUmemGenericAllocationHandle piece;
    int descriptor = receive_descriptor(from);
    NEED(cuMemImportFromShareableHandle(&piece, (void *)(intptr_t)descriptor,
                                        CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
    close(descriptor);
    return piece;
}

/* The importer lets go of half of them, or of all. */
static void import_all(int from, bool healthy)
{
    NEED(cudaFree(NULL));
    for (int i = 0; i < PIECES; i++) {
        CUmemGenericAllocationHandle piece = import_piece(from);
        CUdeviceptr range = map_piece(piece);
        if (healthy || i % 2 == 0)
            give_back(range, piece);
        NEED(write(from, "", 1) != 1);
    }
}

void exported_pieces(bool healthy)
{
    int ends[2], status = 0;
    NEED(socketpair(AF_UNIX, SOCK_STREAM, 0, ends));
    pid_t child = fork();
    if (child == 0) {
        import_all(ends[1], healthy);
        exit(0);
    }
    for (int i = 0; i < PIECES; i++) {
        char done;
        CUmemGenericAllocationHandle piece = make_piece();
        CUdeviceptr range = map_piece(piece);
        export_piece(ends[0], piece);
        NEED(read(ends[0], &done, 1) != 1);
        if (healthy || i == 0)
            give_back(range, piece);
    }
    NEED(waitpid(child, &status, 0) != child || status != 0);
}

SITE void ask_for_a_handle(void *memory)
{
    cudaIpcMemHandle_t handle;
    if (cudaIpcGetMemHandle(&handle, memory) != cudaSuccess)
        exit(1);
}

void ipc_of_pieces(bool healthy)
{
    void *memory = NULL;
    if (healthy)
        NEED(cudaMalloc(&memory, PIECE));
    else
        memory = (void *)(uintptr_t)map_piece(make_piece());
    ask_for_a_handle(memory);
    if (healthy)
        NEED(cudaFree(memory));
}
