/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the figures of a message cannot tell, and the next command to type. Only what
 * concerns the verdict at hand is said.
 */
#include <stdio.h>
#include <string.h>

#include "verdict.h"

static bool is(const struct verdict *verdict, const char *class)
{
    return strcmp(verdict->class, class) == 0;
}

static bool from_torch(const struct verdict *verdict)
{
    return verdict->subject.family == FAMILY_TORCH ||
           verdict->subject.family == FAMILY_TORCH_ASYNC ||
           verdict->subject.family == FAMILY_SUMMARY;
}

/* ---- what cannot be told ----------------------------------------------------------------- */

static void torch_limits(const struct message *subject, struct verdict_lines *lines)
{
    bool torch = subject->family == FAMILY_TORCH || subject->family == FAMILY_TORCH_ASYNC;
    if (torch && subject->hint == HINT_NONE && !number_known(subject, NUMBER_REQUESTED))
        verdict_add(lines, "Anything: the figures stand in the whole message, behind \"Tried to "
                           "allocate\" or \"Currently allocated\"; paste that.");
    if (subject->process_assumed)
        verdict_add(lines,
                    "Which listed process is this one: the largest is taken to be it, as in a "
                    "container, where pids differ from the driver's.");
    if (subject->old_wording)
        verdict_add(lines,
                    "Whose the rest of the device is: this wording (PyTorch before 2.1) does "
                    "not part other processes from the context and libraries of this one.");
    if (subject->old_wording && number_known(subject, NUMBER_UNALLOCATED))
        verdict_add(lines,
                    "Whether cached memory lies in private pools of CUDA graphs: this wording "
                    "counts them as cached.");
    if (subject->free_wrapped)
        verdict_add(lines,
                    "How much was free: the figure is larger than the device (a limit kept by "
                    "another tool wrapped around) and is not used.");
    if (!subject->no_cuda && number_known(subject, NUMBER_OUTSIDE) &&
        number_of(subject, NUMBER_OUTSIDE) > 0)
        verdict_add(lines,
                    "What is in the %s of this process outside of the framework: context, NCCL, "
                    "cuDNN, other libraries.",
                    size_words_of(number_of(subject, NUMBER_OUTSIDE)).text);
    if (subject->family == FAMILY_TORCH_ASYNC)
        verdict_add(lines, "How much of the rest is idle in the driver's pool: freed blocks stay "
                           "there until it is trimmed, and no figure names them.");
}

/* 2, 20 MiB and multiples of 2 MiB are sizes of segments. */
static void request_limits(const struct message *subject, struct verdict_lines *lines)
{
    int64_t request = number_of(subject, NUMBER_REQUESTED);
    if (subject->family != FAMILY_TORCH || !number_known(subject, NUMBER_REQUESTED))
        return;
    if (request == (int64_t)20 << 20)
        verdict_add(lines, "How large the tensor was: 20 MiB is the segment PyTorch asks for on "
                           "behalf of anything from 1 to 10 MiB.");
    else if (request == (int64_t)2 << 20)
        verdict_add(lines, "How large the tensor was: 2 MiB is the segment PyTorch asks for on "
                           "behalf of anything up to 1 MiB.");
}

static void class_limits(const struct verdict *verdict, struct verdict_lines *lines)
{
    const struct message *subject = &verdict->subject;
    if (is(verdict, "fragmented") || is(verdict, "pinned_segment"))
        verdict_add(lines, "%s lines own the blocks between the holes.",
                    number_known(subject, NUMBER_LARGEST_FREE)
                        ? "Which"
                        : "The largest free block, and which");
    if ((is(verdict, "full") || is(verdict, "request_exceeds_device") || is(verdict, "limit")) &&
        subject->says == NULL && subject->family != FAMILY_VLLM)
        verdict_add(lines, "What the allocated memory is, and whether it grew from step to step or "
                           "is what the program needs.");
    if (is(verdict, "waiting_streams"))
        verdict_add(lines, "Which stream the memory waited for, and who marked it as used there.");
    if (is(verdict, "other_process") && subject->family != FAMILY_SMI)
        verdict_add(lines, "Whether the other processes use what they hold or only cache it.");
    if (is(verdict, "unknown") && number_known(subject, NUMBER_FREE) &&
        number_of(subject, NUMBER_FREE) >= number_of(subject, NUMBER_REQUESTED))
        verdict_add(lines,
                    "What refused: a limit of the container, MPS or vGPU, host memory (Windows "
                    "commit limit, WSL), or a process that let go a moment later.");
}

static void table_limits(const struct verdict *verdict, struct verdict_lines *lines)
{
    if (verdict->subject.family == FAMILY_SUMMARY)
        verdict_add(lines,
                    "The moment of the failure: the table is of when it was printed, when an "
                    "exception may already have let go of memory.");
    if (verdict->subject.family == FAMILY_SMI)
        verdict_add(lines,
                    "What failed, and how much of a process's memory is idle in its cache: the "
                    "page shows what is held, at one moment.");
}

static void pool_limits(const struct verdict *verdict, struct verdict_lines *lines)
{
    const struct message *subject = &verdict->subject;
    bool pool = !from_torch(verdict) && subject->family != FAMILY_SMI && subject->says == NULL &&
                subject->hint != HINT_HOST && subject->family != FAMILY_VLLM;
    if (pool && !subject->no_cuda && !number_known(subject, NUMBER_TOTAL))
        verdict_add(lines, "The size of the device and what others held on it: paste `nvidia-smi` "
                           "below the message and both are read together.");
    if (subject->family == FAMILY_XLA || subject->family == FAMILY_TENSORFLOW)
        verdict_add(lines,
                    "What is in the pool: the allocator takes most of the device at the start, "
                    "so the device looks full from outside all the time.");
    if (subject->family == FAMILY_VLLM && subject->says == NULL)
        verdict_add(lines,
                    "What fills the device: weights, activations, graphs or somebody else's; "
                    "vLLM's log above the error has its own account, a trace measures it.");
    if (subject->family == FAMILY_PADDLE)
        verdict_add(lines,
                    "Whose the memory is: what PaddlePaddle calls allocated is all that is not "
                    "free on the device, other processes included.");
    if (subject->family == FAMILY_ONNX && subject->says == NULL)
        verdict_add(lines,
                    "Whether it was the GPU's memory or the host's: ONNX Runtime's arenas fail "
                    "with the same words.");
    if (subject->family == FAMILY_CUPY || subject->family == FAMILY_RMM)
        verdict_add(lines, "Whether the pool's free memory was in one piece.");
}

/* ---- what to do -------------------------------------------------------------------------- */

static const char *program_of(const struct verdict *verdict)
{
    static const char *const programs[] = {
        [FAMILY_GGML] = "./llama-server -m MODEL.gguf",
        [FAMILY_VLLM] = "vllm serve MODEL",
        [FAMILY_SGLANG] = "python -m sglang.launch_server --model-path MODEL",
        [FAMILY_JULIA] = "julia train.jl",
        [FAMILY_TRITON] = "tritonserver --model-repository=MODELS",
        [FAMILY_CUDA] = NULL,
    };
    const char *program = programs[verdict->subject.family];
    return program != NULL ? program : "python train.py";
}

static void trace_it(const struct verdict *verdict, struct verdict_lines *lines)
{
    if (verdict->subject.no_cuda) {
        verdict_add(lines, "vramscope records CUDA devices; this one it cannot trace.");
        return;
    }
    verdict_add(lines, "$ vramscope run -o oom.vscope -- %s", program_of(verdict));
    verdict_add(lines, "$ vramscope report oom.vscope");
}

static void try_settings(const struct verdict *verdict, struct verdict_lines *lines)
{
    const struct message *subject = &verdict->subject;
    bool pieces = is(verdict, "fragmented") || is(verdict, "pinned_segment");
    if (pieces && (subject->family == FAMILY_TORCH || subject->family == FAMILY_SUMMARY))
        verdict_add(lines,
                    "Try PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True: it joins free pages "
                    "that lie apart (PyTorch 2.1 and later).");
    if (pieces && subject->family == FAMILY_TENSORFLOW)
        verdict_add(lines,
                    "Try TF_GPU_ALLOCATOR=cuda_malloc_async: the driver joins what lies apart.");
    if (is(verdict, "limit") && from_torch(verdict) && subject->no_cuda && subject->says == NULL)
        verdict_add(lines,
                    "The limit is PYTORCH_MPS_HIGH_WATERMARK_RATIO; the memory is the host's, "
                    "so other programs and this one's other allocations share it.");
    else if (is(verdict, "limit") && from_torch(verdict) && subject->says == NULL)
        verdict_add(lines, "The limit is set_per_process_memory_fraction or "
                           "per_process_memory_fraction in PYTORCH_CUDA_ALLOC_CONF.");
    if (is(verdict, "limit") && subject->family == FAMILY_RMM)
        verdict_add(lines, "The limit is maximum_pool_size of the PoolMemoryResource.");
    if (is(verdict, "limit") && subject->family == FAMILY_CUPY)
        verdict_add(lines, "The limit is CUPY_GPU_MEMORY_LIMIT or MemoryPool.set_limit().");
    if (is(verdict, "address_space") && subject->family == FAMILY_TORCH)
        verdict_add(lines,
                    "Fewer streams, or PYTORCH_CUDA_ALLOC_CONF=expandable_segments:False: each "
                    "stream's segment reserves more addresses than the device has memory.");
    if (is(verdict, "address_space") && subject->family == FAMILY_GGML)
        verdict_add(lines, "ggml reserves addresses for its pool: build with GGML_CUDA_NO_VMM=ON.");
    if (subject->says != NULL && subject->says->next != NULL)
        verdict_add(lines, "%s", subject->says->next);
    else if (is(verdict, "host_memory"))
        verdict_add(lines,
                    "Look at the host: free -m, ulimit -l, the container's memory limit, the "
                    "size of /dev/shm.");
    if (subject->family == FAMILY_XLA && !is(verdict, "request_exceeds_device"))
        verdict_add(lines,
                    "To see the real use from outside: XLA_PYTHON_CLIENT_PREALLOCATE=false.");
}

static void look_outside(const struct verdict *verdict, struct verdict_lines *lines)
{
    bool asked = is(verdict, "other_process") || is(verdict, "outside") || is(verdict, "unknown") ||
                 verdict->subject.family == FAMILY_PADDLE;
    if (!asked || verdict->subject.no_cuda || verdict->subject.family == FAMILY_HOST)
        return;
    verdict_add(lines,
                "$ nvidia-smi --query-compute-apps=pid,process_name,used_memory --format=csv");
}

void verdict_advise(struct verdict *verdict)
{
    struct verdict_lines *cannot = &verdict->cannot_tell;
    const struct explanation *says = verdict->subject.says;
    if (says != NULL && says->cannot_tell != NULL)
        verdict_add(cannot, "%s", says->cannot_tell);
    class_limits(verdict, cannot);
    torch_limits(&verdict->subject, cannot);
    request_limits(&verdict->subject, cannot);
    table_limits(verdict, cannot);
    pool_limits(verdict, cannot);
    try_settings(verdict, &verdict->next);
    look_outside(verdict, &verdict->next);
    trace_it(verdict, &verdict->next);
}
