# SPDX-License-Identifier: Apache-2.0
"""A CUDA tensor shared with another process: what one writes the other reads,
and the sender's memory stays until the receiver lets go."""
import figures
import torch
import torch.multiprocessing as multiprocessing

COUNT = 1 << 20


def receive(tensors, answers):
    shared = tensors.get(timeout=60)
    answers.put((str(shared.device), shared[5:8].cpu().tolist(), figures.allocated()))
    shared[:3].copy_(torch.full((3,), 7.0))
    torch.cuda.synchronize()
    answers.put("written")
    tensors.get(timeout=60)  # the sender has read it
    del shared
    torch.cuda.synchronize()


def main():
    context = multiprocessing.get_context("spawn")
    tensors, answers = context.Queue(), context.Queue()
    child = context.Process(target=receive, args=(tensors, answers))
    child.start()
    sent = torch.arange(COUNT, dtype=torch.float32).cuda()
    tensors.put(sent)
    device, values, child_allocated = answers.get(timeout=120)
    figures.check("the receiver's device", device, "cuda:0")
    figures.check("the receiver reads", values, [5.0, 6.0, 7.0])
    figures.check("shared memory is not the receiver's", child_allocated, 0)
    figures.check("the receiver wrote", answers.get(timeout=60), "written")
    figures.check("the sender sees it", sent[:4].cpu().tolist(), [7.0, 7.0, 7.0, 3.0])
    tensors.put(None)
    child.join(60)
    figures.check("the receiver ended well", child.exitcode, 0)
    figures.finish()


if __name__ == "__main__":
    main()
