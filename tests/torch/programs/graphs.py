# SPDX-License-Identifier: Apache-2.0
"""CUDA graphs: a private pool, one shared by two graphs, copies that happen at
replay and not at capture, and make_graphed_callables."""
import figures
import torch


def pools():
    return {tuple(s["segment_pool_id"]) for s in torch.cuda.memory_snapshot()}


def capture_with_private_pool():
    static = torch.ones(1 << 16, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        made_in_capture = torch.empty(8 * figures.MIB, dtype=torch.uint8, device="cuda")
        static.copy_(static + 1)
    figures.check("capture has a pool of its own", len(pools()) >= 2)
    graph.replay()
    second = torch.cuda.CUDAGraph()
    with torch.cuda.graph(second, pool=graph.pool()):
        out = static * 2
    second.replay()
    return graph, second, static, made_in_capture, out


def copies_run_at_replay():
    pinned = torch.arange(4.0).pin_memory()
    target = torch.zeros(4, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        target.copy_(pinned, non_blocking=True)
    figures.check("capture copies nothing", target.cpu().tolist(), [0.0, 0.0, 0.0, 0.0])
    pinned.add_(1)
    graph.replay()
    torch.cuda.synchronize()
    figures.check("replay copies", target.cpu().tolist(), [1.0, 2.0, 3.0, 4.0])


def graphed_callable():
    layer = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(),
                                torch.nn.Linear(64, 8)).cuda()
    sample = torch.randn(16, 64, device="cuda", requires_grad=True)
    graphed = torch.cuda.make_graphed_callables(layer, (sample,))
    for _ in range(3):
        graphed(torch.randn(16, 64, device="cuda")).sum().backward()
    figures.check("gradients arrive", layer[0].weight.grad is not None)
    return graphed, layer


def main():
    kept = [capture_with_private_pool()]
    copies_run_at_replay()
    kept.append(graphed_callable())
    before = figures.reserved()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        temporary = torch.zeros(24 * figures.MIB, dtype=torch.uint8, device="cuda")
    graph.replay()
    torch.cuda.synchronize()
    grown = figures.reserved()
    figures.check("a graph's memory is reserved", grown > before)
    del temporary
    graph.reset()
    del graph
    torch.cuda.empty_cache()
    figures.check("a destroyed graph's memory is given back", figures.reserved() < grown)
    figures.finish()


main()
