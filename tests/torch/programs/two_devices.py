# SPDX-License-Identifier: Apache-2.0
"""Two devices: books of their own, peer copies, the wrong device refused."""
import figures
import torch

COUNT = 4 * figures.MIB // 4


def main():
    figures.check("two devices", torch.cuda.device_count(), 2)
    first = torch.arange(COUNT, dtype=torch.float32).to("cuda:0")
    figures.check("only the first is used", (figures.allocated(0) > 0, figures.allocated(1)),
                  (True, 0))
    second = first.to("cuda:1")
    figures.check("both hold the same", figures.allocated(1), figures.allocated(0))
    figures.check("peer copy", second[1000:1003].cpu().tolist(), [1000.0, 1001.0, 1002.0])
    back = torch.empty_like(first)
    back.copy_(second, non_blocking=True)
    torch.cuda.synchronize(0)
    torch.cuda.synchronize(1)
    figures.check("and back", back[-2:].cpu().tolist(), [COUNT - 2.0, COUNT - 1.0])
    figures.check("they can reach each other", torch.cuda.can_device_access_peer(0, 1))
    with torch.cuda.device(1):
        side = torch.cuda.Stream()
        with torch.cuda.stream(side):
            kept = torch.empty(COUNT, device="cuda")
    figures.check("the current device is back", torch.cuda.current_device(), 0)
    try:
        torch.cuda.set_device(2)
        figures.check("a third device is refused", False)
    except (RuntimeError, AssertionError) as error:
        figures.check("it says why", "invalid device ordinal" in str(error))
    model = torch.nn.Linear(64, 64).to("cuda:1")
    model(torch.randn(4, 64, device="cuda:1")).sum().backward()
    del back, kept
    figures.finish()


main()
