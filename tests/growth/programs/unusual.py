# SPDX-License-Identifier: Apache-2.0
"""Loops of unusual shape that keep nothing; with "leak" behind the name each keeps something of
every step (or round), at the line marked LEAK NAME, most as such programs do by mistake.

usage: unusual.py "NAME [leak]" ...
Prints what healthy.py prints.
"""
import collections
import ctypes
import functools
import io
import sys
import time

import healthy
from healthy import STEPS, WIDTH, batch, call, kept, leak, loss_of, stack_of_blocks, update
import torch
from torch import nn


def tell(value):
    print(float(value), file=sys.stderr)


def learner(count=3):
    model = stack_of_blocks(count)
    return model, torch.optim.AdamW(model.parameters())


def curriculum():
    """Sequences become longer every eight steps."""
    model = healthy.Language().cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    for step in range(STEPS):
        tokens = torch.zeros(2, 4 + 5 * (step // 8), dtype=torch.long, device="cuda")
        update(optimizer, model(tokens).float().square().mean())
        leak()  # LEAK curriculum


def profiled():
    """A profiler records two steps in five."""
    model, optimizer = learner()
    schedule = torch.profiler.schedule(wait=2, warmup=1, active=2)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU],
                                schedule=schedule) as profiler:
        for _ in range(STEPS):
            update(optimizer, loss_of(model))
            leak()  # LEAK profiled
            profiler.step()


def saving():
    """A file of the state every seven steps, a validation with large batches every ten."""
    model, optimizer = learner()
    for step in range(STEPS):
        update(optimizer, loss_of(model))
        leak()  # LEAK saving
        if step % 7 == 6:
            torch.save((model.state_dict(), optimizer.state_dict()), io.BytesIO())
        if step % 10 == 9:
            with torch.no_grad():
                for _ in range(3):
                    tell(loss_of(model, 256))


def ring_of_losses():
    """Losses are written into a ring made before."""
    model, optimizer = learner()
    ring = torch.zeros(16, device="cuda")
    for step in range(STEPS):
        loss = loss_of(model)
        update(optimizer, loss)
        ring[step % 16] = loss.detach()
        leak()  # LEAK ring_of_losses


def cached_calls():
    """A decorator keeps the last eight results, in the mutant all."""
    model, optimizer = learner()

    @functools.lru_cache(maxsize=None if healthy.leaking else 8)
    def scale(step):
        return torch.full((1,), 1 / (step + 1), device="cuda")  # LEAK cached_calls
    for step in range(STEPS):
        update(optimizer, loss_of(model) * scale(step))


def hooked():
    """A hook notes a figure of each layer's output, cleared after the step."""
    model, optimizer = learner()
    seen = []
    model[-1].register_forward_hook(
        lambda _, __, out: seen.append(out.detach().sum()))  # LEAK hooked
    for _ in range(STEPS):
        update(optimizer, loss_of(model))
        if not healthy.leaking:
            seen.clear()


def retained():
    """Two passes back over one graph."""
    model, optimizer = learner()
    for _ in range(STEPS):
        loss = loss_of(model)
        loss.backward(retain_graph=True)
        update(optimizer, loss)
        leak()  # LEAK retained


def rebuilt():
    """A model of its own for each round of six steps; the mutant keeps a weight of each."""
    for _ in range(20):
        model, optimizer = learner(2)
        for _ in range(6):
            update(optimizer, loss_of(model))
        mean = model[0].up.bias.detach().mean()  # LEAK rebuilt
        if healthy.leaking:
            kept.append(mean)
        del model, optimizer, mean


def failing(model, step):
    scratch = torch.empty(100, device="cuda")  # LEAK caught_errors
    with torch.no_grad():
        tell(model(batch(1)[0]).sum() + scratch.numel())
    raise ValueError(step)


def caught_errors():
    """Each step raises an error that holds the frame with its tensors."""
    model, optimizer = learner()
    for step in range(STEPS):
        update(optimizer, loss_of(model))
        try:
            failing(model, step)
        except ValueError as error:
            if healthy.leaking:
                kept.append(error)


def metric():
    """A metric keeps a figure of each step and is reset after each epoch of ten."""
    model, optimizer = learner()
    values = []
    for step in range(STEPS):
        loss = loss_of(model)
        values.append(loss.detach() * 2)  # LEAK metric
        update(optimizer, loss)
        if step % 10 == 9:
            tell(torch.stack(values).mean())
            if not healthy.leaking:
                values.clear()


def streams():
    """A stream and an event for each step."""
    model, optimizer = learner()
    for _ in range(STEPS):
        stream, event = ctypes.c_void_p(), ctypes.c_void_p()
        call("cuStreamCreate", ctypes.byref(stream), 1)  # LEAK streams
        call("cuEventCreate", ctypes.byref(event), 0)
        update(optimizer, loss_of(model))
        call("cuEventDestroy_v2", event)
        if not healthy.leaking:
            call("cuStreamDestroy_v2", stream)


def recaptured():
    """A graph is captured anew for each step."""
    model = stack_of_blocks().eval()
    with torch.no_grad():
        for _ in range(STEPS):
            static = batch()[0]
            model(static)
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                out = model(static)
            graph.replay()
            tell(out.sum())
            leak()  # LEAK recaptured
            del graph, out, static


def pinned_loader():
    """A loader pins its batches in a thread of its own."""
    model, optimizer = learner()
    data = torch.utils.data.TensorDataset(torch.randn(STEPS * 8, WIDTH))
    for batch_of, in torch.utils.data.DataLoader(data, 8, pin_memory=True):
        update(optimizer, model(batch_of.to("cuda", non_blocking=True)).square().mean())
        leak()  # LEAK pinned_loader


def only_appended():
    """Nothing is freed: the outputs of a loop are appended to a list; healthy: to the host."""
    weights = torch.ones(100, device="cuda")
    out = torch.empty(100, device="cuda")
    for _ in range(STEPS * 2):
        time.sleep(0.005)
        if healthy.leaking:
            kept.append(weights + 1)  # LEAK only_appended
        else:
            torch.add(weights, 1, out=out)
            kept.append(out.cpu())


def loaded_weights():
    """Weights of a model are loaded one by one, then it answers."""
    layers = [torch.empty(WIDTH, WIDTH, device="cuda") for _ in range(300)]
    value = batch()[0]
    for _ in range(STEPS):
        for layer in layers[:4]:
            value = torch.relu(value @ layer.fill_(0))
        leak()  # LEAK loaded_weights
    tell(value.sum())


def two_tasks():
    """Two heads in turn, one behind a trunk twice as deep."""
    model, optimizer = learner()
    other = nn.Linear(WIDTH, 3).cuda()
    for step in range(STEPS):
        if step % 2:
            update(optimizer, other(model[:-1](batch()[0])).square().mean())
        else:
            update(optimizer, loss_of(model))
        leak()  # LEAK two_tasks


def denoising():
    """Twenty-five steps to each of several images."""
    model = stack_of_blocks().eval()
    widen = nn.Linear(10, WIDTH).cuda()
    with torch.no_grad():
        for _ in range(STEPS // 2):
            image = torch.randn(4, WIDTH, device="cuda")
            for _ in range(25):
                image = image - 0.1 * widen(model(image))
            tell(image.sum())
            leak()  # LEAK denoising


def inner_loop():
    """Learning to learn: three inner updates whose graph goes into the outer step."""
    weights = nn.Parameter(torch.randn(WIDTH, 4, device="cuda"))
    optimizer = torch.optim.Adam([weights])
    for _ in range(STEPS):
        fast = weights
        for _ in range(3):
            loss = (batch()[0] @ fast).square().mean()
            gradient, = torch.autograd.grad(loss, fast, create_graph=True)
            fast = fast - 0.01 * gradient
        update(optimizer, (batch()[0] @ fast).square().mean())
        leak()  # LEAK inner_loop


def growing_model():
    """A layer is added every ten steps, five times in all."""
    model = stack_of_blocks(1)
    optimizer = torch.optim.AdamW(model.parameters())
    for step in range(2 * STEPS):
        if step % 10 == 9 and len(model) < 7:
            block = healthy.Block().cuda()
            model.insert(0, block)
            optimizer.add_param_group({"params": list(block.parameters())})
        update(optimizer, loss_of(model))
        leak()  # LEAK growing_model


def late_parameters():
    """A row of parameters of which another one is used for the first time in each of 12 steps."""
    rows = [nn.Parameter(torch.randn(WIDTH, device="cuda")) for _ in range(12)]
    model, _ = learner()
    optimizer = torch.optim.AdamW(list(model.parameters()) + rows)
    for step in range(STEPS):
        update(optimizer, (model(batch()[0] + rows[step % 12])).square().mean())
        leak()  # LEAK late_parameters


def second_order():
    """L-BFGS: a bounded history of steps, several passes in each."""
    model = nn.Linear(WIDTH, 4).cuda()
    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=4, history_size=6)
    inputs, wanted = batch()[0], torch.randn(8, 4, device="cuda")

    def closure():
        optimizer.zero_grad()
        loss = (model(inputs) - wanted).square().mean()
        loss.backward()
        return loss
    for _ in range(STEPS):
        optimizer.step(closure)
        leak()  # LEAK second_order


def offloaded():
    """Each layer comes to the device for its turn only."""
    model = stack_of_blocks(4).eval().cpu()
    with torch.no_grad():
        for _ in range(STEPS):
            value = batch()[0]
            for block in model:
                block.cuda()
                value = block(value)
                block.cpu()
            tell(value.sum())
            leak()  # LEAK offloaded


def teachers():
    """The five last states, one every six steps."""
    model, optimizer = learner()
    states = collections.deque(maxlen=5)
    for step in range(2 * STEPS):
        update(optimizer, loss_of(model))
        if step % 6 == 5:
            states.append({name: value.clone() for name, value in model.state_dict().items()})
        leak()  # LEAK teachers


def prefetched():
    """The next batch is made while the last one is used."""
    model, optimizer = learner()
    following = batch()[0]
    for _ in range(STEPS):
        current, following = following, batch()[0]
        update(optimizer, model(current).square().mean())
        leak()  # LEAK prefetched


def beams():
    """Beams are reordered with their caches after each token; a request ends after eight."""
    model = healthy.Language().cuda().eval()
    with torch.no_grad():
        for _ in range(STEPS):
            tokens = torch.zeros(4, 3, dtype=torch.long, device="cuda")
            cache = model.embedding(tokens)
            for _ in range(8):
                best = model.head(cache.mean(1)).max(-1).indices
                order = torch.randint(0, 4, (4,), device="cuda")
                cache = torch.cat([cache.index_select(0, order),
                                   model.embedding(best)[:, None]], dim=1)
            tell(cache.sum())
            leak()  # LEAK beams


def finding_the_batch():
    """The batch is doubled until it does not fit; then it trains with what did."""
    model, optimizer = learner()
    size = 1 << 20
    while True:
        try:
            torch.empty(size, 1024, device="cuda")
            size *= 2
        except torch.cuda.OutOfMemoryError:
            break
    for _ in range(STEPS):
        update(optimizer, loss_of(model))
        leak()  # LEAK finding_the_batch


PROGRAMS = {program.__name__: program for program in (
    curriculum, profiled, saving, ring_of_losses, cached_calls, hooked, retained, rebuilt,
    caught_errors, metric, streams, recaptured, pinned_loader, only_appended, loaded_weights,
    two_tasks, denoising, inner_loop, growing_model, late_parameters, second_order, offloaded,
    teachers, prefetched, beams, finding_the_batch)}


if __name__ == "__main__":
    healthy.main(PROGRAMS)
