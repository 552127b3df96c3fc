# SPDX-License-Identifier: Apache-2.0
"""Programs that keep nothing from step to step; with "leak" behind the name each
keeps one block of 512 bytes (or one object) of every step, at the line marked LEAK NAME.

usage: healthy.py "NAME [leak]" ...
Prints a line of JSON per process: its id, the case, its exit status.
"""
import collections
import copy
import ctypes
import json
import os
import sys

os.environ.setdefault("OMP_NUM_THREADS", "1")

import torch
import torch._dynamo  # with the first optimizer step else, in each process
from torch import nn
import torch.utils.checkpoint

torch.set_num_threads(1)
torch.backends.cudnn.enabled = False

STEPS = 40
WIDTH = 64
AT_ONCE = 2
leaking = False
kept = []
driver = ctypes.CDLL("libcuda.so.1")


def leak():
    if leaking:
        kept.append(torch.empty(100, device="cuda"))


def call(name, *arguments):
    status = getattr(driver, name)(*arguments)
    if status != 0:
        raise RuntimeError(f"{name}: {status}")


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 2 * WIDTH), nn.Linear(2 * WIDTH, WIDTH)

    def forward(self, x):
        return x + self.down(torch.relu(self.up(self.norm(x))))


def stack_of_blocks(count=3):
    return nn.Sequential(*(Block() for _ in range(count)), nn.Linear(WIDTH, 10)).cuda()


def batch(size=8):
    return torch.randn(size, WIDTH, device="cuda"), torch.zeros(size, dtype=torch.long, device="cuda")


def loss_of(model, size=8):
    inputs, targets = batch(size)
    return nn.functional.cross_entropy(model(inputs), targets)


def update(optimizer, loss):
    loss.backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)


class Language(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(100, WIDTH)
        layer = nn.TransformerEncoderLayer(WIDTH, 4, 2 * WIDTH, dropout=0.1, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(WIDTH, 100)

    def forward(self, tokens):
        mask = torch.triu(torch.full((tokens.shape[1],) * 2, float("-inf"), device="cuda"), 1)
        return self.head(self.encoder(self.embedding(tokens), mask=mask))


def train_language(length_of_step, leak_here):
    model = Language().cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    for step in range(STEPS):
        tokens = torch.zeros(4, length_of_step(step), dtype=torch.long, device="cuda")
        update(optimizer, model(tokens).float().square().mean())
        leak_here()


def language():
    def leak_here():
        leak()  # LEAK language
    train_language(lambda step: 16, leak_here)


def language_shapes():
    def leak_here():
        leak()  # LEAK language_shapes
    train_language(lambda step: 4 + step * 7 % 29, leak_here)


def vision():
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2),
                          nn.Conv2d(8, 16, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                          nn.Linear(16, 10)).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for _ in range(STEPS):
        images = torch.randn(4, 3, 24, 24, device="cuda")
        update(optimizer, model(images).square().mean())
        leak()  # LEAK vision


def evaluation():
    model = stack_of_blocks()
    optimizer = torch.optim.AdamW(model.parameters())
    for step in range(STEPS):
        update(optimizer, loss_of(model))
        leak()  # LEAK evaluation
        if step % 8 == 7:
            with torch.no_grad():
                print(sum(float(loss_of(model, 16)) for _ in range(5)), file=sys.stderr)


def accumulation():
    model = stack_of_blocks()
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(STEPS):
        for _ in range(4):
            (loss_of(model) / 4).backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        leak()  # LEAK accumulation


def checkpointing():
    model = stack_of_blocks()
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(STEPS):
        inputs, targets = batch()
        for block in model[:-1]:
            inputs = torch.utils.checkpoint.checkpoint(block, inputs, use_reentrant=False)
        update(optimizer, nn.functional.cross_entropy(model[-1](inputs), targets))
        leak()  # LEAK checkpointing


def mixed_precision():
    model = stack_of_blocks()
    optimizer = torch.optim.AdamW(model.parameters())
    scaler = torch.amp.GradScaler("cuda")
    for _ in range(STEPS):
        with torch.autocast("cuda", dtype=torch.float16):
            loss = loss_of(model)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad(set_to_none=True)
        leak()  # LEAK mixed_precision


def averaged_weights():
    model = stack_of_blocks()
    average = torch.optim.swa_utils.AveragedModel(model)
    optimizer = torch.optim.AdamW(model.parameters())
    for step in range(STEPS):
        update(optimizer, loss_of(model))
        if step % 4 == 3:
            average.update_parameters(model)
        leak()  # LEAK averaged_weights


def adversarial():
    maker, judge = stack_of_blocks(2), stack_of_blocks(2)
    make_step = torch.optim.Adam(maker.parameters())
    judge_step = torch.optim.Adam(judge.parameters())
    widen = nn.Linear(10, WIDTH).cuda()
    for _ in range(STEPS):
        fake = widen(maker(batch()[0]))
        update(judge_step, judge(fake.detach()).square().mean() + loss_of(judge))
        update(make_step, judge(fake).square().mean())
        judge_step.zero_grad(set_to_none=True)
        widen.zero_grad(set_to_none=True)
        leak()  # LEAK adversarial


def recurrent():
    model = nn.LSTM(WIDTH, WIDTH, batch_first=True).cuda()
    optimizer = torch.optim.RMSprop(model.parameters())
    state = None
    for _ in range(STEPS):
        out, state = model(torch.randn(4, 6, WIDTH, device="cuda"), state)
        state = tuple(part.detach() for part in state)
        update(optimizer, out.square().mean())
        leak()  # LEAK recurrent


def generation():
    """A cache of keys grows by a token at a time and is dropped after each answer."""
    model = stack_of_blocks().eval()
    with torch.no_grad():
        for _ in range(STEPS):
            cache = batch(1)[0]
            for _ in range(12):
                new = model[0](cache[-1:])
                cache = torch.cat([cache, new])
            print(float(model(cache).sum()), file=sys.stderr)
            leak()  # LEAK generation


def sleep_and_wake():
    model = stack_of_blocks().eval()
    with torch.no_grad():
        for step in range(STEPS):
            print(float(model(batch()[0]).sum()), file=sys.stderr)
            leak()  # LEAK sleep_and_wake
            if step % 8 == 7:
                model.cpu()
                torch.cuda.empty_cache()
                model.cuda()


def graphs():
    """Fifty graphs of one pool, captured once and replayed in turn."""
    model = stack_of_blocks().eval()
    captured, pool = [], None
    with torch.no_grad():
        model(batch()[0])
        for size in range(1, 51):
            static = torch.randn(size, WIDTH, device="cuda")
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, pool=pool):
                out = model(static)
            pool = graph.pool()
            captured.append((graph, static, out))
        for step in range(STEPS):
            graph, static, out = captured[step % len(captured)]
            static.copy_(torch.randn_like(static))
            graph.replay()
            print(float(out.sum()), file=sys.stderr)
            leak()  # LEAK graphs


def load_module():
    module = ctypes.c_void_p()
    call("cuModuleLoadData", ctypes.byref(module), b"\x7fELF" + bytes(2048))
    return module


def modules():
    """256 modules are loaded and unloaded while it infers."""
    model = stack_of_blocks().eval()
    with torch.no_grad():
        for _ in range(32):
            loaded = [load_module() for _ in range(8)]
            print(float(model(batch()[0]).sum()), file=sys.stderr)
            for module in loaded:
                call("cuModuleUnload", module)
            if leaking:
                kept.append(load_module())  # LEAK modules


def open_channel():
    stream, buffer = ctypes.c_void_p(), ctypes.c_uint64()
    call("cuStreamCreate", ctypes.byref(stream), 1)  # LEAK communicators
    call("cuMemAlloc_v2", ctypes.byref(buffer), ctypes.c_size_t(4 << 20))
    return stream, buffer


def communicators():
    """24 times a stream and a buffer of the driver's are made and given back."""
    model = stack_of_blocks().eval()
    with torch.no_grad():
        for _ in range(24):
            stream, buffer = open_channel()
            print(float(model(batch()[0]).sum()), file=sys.stderr)
            call("cuMemFree_v2", buffer)
            if leaking:
                kept.append(stream)
            else:
                call("cuStreamDestroy_v2", stream)


def side_stream():
    """Batches are pinned and copied on a stream of their own."""
    model = stack_of_blocks()
    optimizer = torch.optim.AdamW(model.parameters())
    copies = torch.cuda.Stream()
    for _ in range(STEPS):
        pinned = torch.zeros(8, WIDTH).pin_memory()
        with torch.cuda.stream(copies):
            inputs = pinned.to("cuda", non_blocking=True)
        torch.cuda.current_stream().wait_stream(copies)
        inputs.record_stream(torch.cuda.current_stream())
        update(optimizer, model(inputs).square().mean())
        leak()  # LEAK side_stream


def replay_buffer():
    """Experience is kept up to a bound, then the oldest goes."""
    model = stack_of_blocks()
    optimizer = torch.optim.Adam(model.parameters())
    buffer = collections.deque(maxlen=12)
    for _ in range(STEPS):
        buffer.append(batch(2)[0])
        update(optimizer, model(torch.cat(list(buffer)[-4:])).square().mean())
        leak()  # LEAK replay_buffer


def cache_by_length():
    """A mask for each length is made when it first occurs."""
    model = Language().cuda().eval()
    masks = {}
    with torch.no_grad():
        for step in range(STEPS):
            length = 4 + step * step % 5
            if length not in masks:
                masks[length] = torch.zeros(length, length, device="cuda")
            tokens = torch.zeros(2, length, dtype=torch.long, device="cuda")
            print(float((model(tokens).sum() + masks[length].sum())), file=sys.stderr)
            leak()  # LEAK cache_by_length


def running_metrics():
    """The last ten losses stay on the device; the mean is told now and then."""
    model = stack_of_blocks()
    optimizer = torch.optim.AdamW(model.parameters())
    recent = collections.deque(maxlen=10)
    for step in range(STEPS):
        loss = loss_of(model)
        update(optimizer, loss)
        recent.append(loss.detach())
        if step % 10 == 9:
            print(float(torch.stack(list(recent)).mean()), file=sys.stderr)
        leak()  # LEAK running_metrics


def saved_to_host():
    """A frozen trunk; the head's weights go to the host every ten steps, only the last is kept."""
    model = stack_of_blocks()
    for block in model[:-1]:
        block.requires_grad_(False)
    optimizer = torch.optim.AdamW(model[-1].parameters())
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, STEPS)
    saved = None
    for step in range(STEPS):
        update(optimizer, loss_of(model))
        schedule.step()
        if step % 10 == 9:
            saved = {name: value.cpu() for name, value in model.state_dict().items()}
        leak()  # LEAK saved_to_host
    return saved


def last_activation():
    """A hook keeps each layer's output until the next one replaces it."""
    model = stack_of_blocks()
    optimizer = torch.optim.AdamW(model.parameters())
    seen = {}
    for index, block in enumerate(model):
        block.register_forward_hook(lambda _, __, out, at=index: seen.update({at: out.detach()}))
    for _ in range(STEPS):
        update(optimizer, loss_of(model))
        leak()  # LEAK last_activation


def finding_the_rate():
    """An LR finder: the rate rises with every step until it is told back; the start comes back."""
    model = stack_of_blocks()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)
    start = copy.deepcopy(model.state_dict())
    told = []
    for _ in range(STEPS):
        loss = loss_of(model)
        update(optimizer, loss)
        told.append(loss.item())
        optimizer.param_groups[0]["lr"] *= 1.2
        leak()  # LEAK finding_the_rate
    model.load_state_dict(start)


def early_stopping():
    """A copy of the best state stays until a better one comes: often at first, then rarely."""
    model = stack_of_blocks()
    optimizer = torch.optim.AdamW(model.parameters())
    best = None
    for step in range(STEPS):
        update(optimizer, loss_of(model))
        with torch.no_grad():
            print(float(loss_of(model, 16)), file=sys.stderr)
        if step < 6 or step in (9, 14, 22, 31):
            best = copy.deepcopy((model.state_dict(), optimizer.state_dict()))
        leak()  # LEAK early_stopping
    return best


def moving_average():
    """Averaged weights of every step, made anew out of place."""
    model = stack_of_blocks()
    optimizer = torch.optim.AdamW(model.parameters())
    average = {name: value.detach().clone() for name, value in model.named_parameters()}
    for _ in range(STEPS):
        update(optimizer, loss_of(model))
        average = {name: average[name] * 0.99 + value.detach() * 0.01
                   for name, value in model.named_parameters()}
        leak()  # LEAK moving_average


def filling_buffer():
    """Reinforcement: a memory of separate transitions fills up in half of the run and is bounded."""
    actor, target = stack_of_blocks(2), stack_of_blocks(2)
    optimizer = torch.optim.Adam(actor.parameters())
    memory = collections.deque(maxlen=80)
    for step in range(2 * STEPS):
        for _ in range(2):
            state = batch(1)[0]
            with torch.no_grad():
                action = actor(state).argmax(-1)
            memory.append((state, action, torch.randn(1, device="cuda")))
        drawn = [memory[(step * 7 + i * 3) % len(memory)] for i in range(4)]
        states = torch.cat([state for state, _, _ in drawn])
        rewards = torch.cat([reward for _, _, reward in drawn])
        with torch.no_grad():
            wanted = rewards + 0.9 * target(states).max(-1).values
        taken = actor(states).gather(1, torch.stack([action for _, action, _ in drawn])).squeeze(1)
        update(optimizer, (taken - wanted).square().mean())
        if step % 10 == 9:
            target.load_state_dict(actor.state_dict())
        leak()  # LEAK filling_buffer


def answers():
    """Requests of different length: keys and values of two layers grow by a token at a time, and
    go with the answer."""
    model = Language().cuda().eval()
    with torch.no_grad():
        for request in range(STEPS):
            tokens = torch.zeros(1, 3 + request * 5 % 7, dtype=torch.long, device="cuda")
            keys = [model.embedding(tokens) for _ in range(2)]
            for _ in range(4 + request * 11 % 13):
                new = model.embedding(tokens[:, -1:])
                for layer in range(2):
                    keys[layer] = torch.cat([keys[layer], new], dim=1)
                    new = new + nn.functional.softmax(new @ keys[layer].transpose(1, 2), -1) @ keys[layer]
                tokens = torch.cat([tokens, model.head(new).argmax(-1)], dim=1)
            print(int(tokens.sum()), file=sys.stderr)
            leak()  # LEAK answers


def varying_depth():
    """Checkpoints over another number of layers in each step, the last ones dropped at random."""
    model = stack_of_blocks(5)
    optimizer = torch.optim.AdamW(model.parameters())
    for step in range(STEPS):
        inputs, targets = batch()
        for block in model[:1 + step * 3 % 5]:
            inputs = torch.utils.checkpoint.checkpoint(block, inputs, use_reentrant=False)
        update(optimizer, nn.functional.cross_entropy(model[-1](inputs), targets))
        leak()  # LEAK varying_depth


class Skipping:
    """Tells the scaler at every seventh step that gradients were infinite: no optimizer step."""

    def __init__(self, optimizer):
        self.optimizer, self.steps = optimizer, 0

    def step(self, scaler):
        self.steps += 1
        if self.steps % 7 == 0 or self.steps < 4:
            scaler.update(scaler.get_scale() / 2)
            return
        scaler.step(self.optimizer)
        scaler.update()


def scaler_skips():
    model = stack_of_blocks()
    optimizer = torch.optim.AdamW(model.parameters())
    scaler, skipping = torch.amp.GradScaler("cuda", init_scale=2.0 ** 24), Skipping(optimizer)
    for _ in range(STEPS):
        with torch.autocast("cuda", dtype=torch.float16):
            loss = loss_of(model)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        skipping.step(scaler)
        optimizer.zero_grad(set_to_none=True)
        leak()  # LEAK scaler_skips


def gradients_to_zero():
    """Gradients stay and are set to zero, with several passes to a step."""
    model = stack_of_blocks()
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(STEPS):
        for _ in range(3):
            (loss_of(model) / 3).backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=False)
        leak()  # LEAK gradients_to_zero


def evaluate_round(model, keep, count=8):
    """The outputs are told on the host."""
    outputs = []
    model.eval()
    with torch.no_grad():
        for _ in range(count):
            out = model(batch(16)[0]).max()
            keep(out)
            outputs.append(float(out))
    model.train()
    return sum(outputs)


def evaluation_behind():
    """Trained, then evaluated three times."""
    model = stack_of_blocks()
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(3 * STEPS):
        update(optimizer, loss_of(model))

    def keep(out):
        if leaking:
            kept.append(out.clone())  # LEAK evaluation_behind
    print([evaluate_round(model, keep) for _ in range(3)], file=sys.stderr)


def evaluation_between():
    """Four epochs of training, each with an evaluation."""
    model = stack_of_blocks()
    optimizer = torch.optim.AdamW(model.parameters())

    def keep(out):
        if leaking:
            kept.append(out.clone())  # LEAK evaluation_between
    for _ in range(4):
        for _ in range(STEPS):
            update(optimizer, loss_of(model))
        print(evaluate_round(model, keep), file=sys.stderr)


PROGRAMS = {program.__name__: program for program in (
    vision, language, language_shapes, evaluation, accumulation, checkpointing, mixed_precision,
    averaged_weights, adversarial, recurrent, generation, sleep_and_wake, graphs, modules,
    communicators, side_stream, replay_buffer, cache_by_length, running_metrics, saved_to_host,
    last_activation, finding_the_rate, early_stopping, moving_average, filling_buffer, answers,
    varying_depth, scaler_skips, gradients_to_zero, evaluation_behind, evaluation_between)}


def run(programs, words):
    global leaking
    name, *rest = words.split()
    leaking = rest == ["leak"]
    torch.manual_seed(0)
    programs[name]()
    torch.cuda.synchronize()


def main(programs):
    """Each case in a process of its own, forked before the device is touched."""
    failed, running = False, {}
    waiting = sys.argv[1:]
    while waiting or running:
        while waiting and len(running) < AT_ONCE:
            case = waiting.pop(0)
            child = os.fork()
            if child == 0:
                run(programs, case)
                sys.exit(0)
            running[child] = case
        child, status = os.wait()
        failed = failed or status != 0
        print(json.dumps({"pid": child, "case": running.pop(child), "status": status}), flush=True)
    sys.exit(failed)


if __name__ == "__main__":
    main(PROGRAMS)
