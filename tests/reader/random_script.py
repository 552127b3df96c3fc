# SPDX-License-Identifier: Apache-2.0
"""Random scripts for mktrace: a small world of addresses, handles, contexts and pools, in which anything may
follow anything, so that two folds of the same events meet in every corner of their rules."""
import random

TORCH, APP, SAVER, ONEFLOW = "/v/torch/lib/libc10_cuda.so", "/usr/bin/app", "/v/saver.so", "/v/liboneflow.so"
UNKNOWN = (1 << 64) - 1
HEAD = """meta process {"pid":100,"host_pid":100,"exe":"/usr/bin/app"}
meta end {"ended":"exit","exit_code":0,"signal":null,"complete":true}
device 0 16G One
device 1 8G Two
"""
MIB = 1 << 20


class Script:
    def __init__(self, seed):
        self.random = random.Random(seed)
        self.lines, self.sequence, self.time, self.undoable = [], 100, 1_000_000_000, []
        self.reserved = [0, 0]
        # Some of all: a world with only a few kinds meets itself more often.
        every = [name[5:] for name in dir(self) if name.startswith("kind_")]
        self.kinds = self.random.sample(every, self.random.randint(4, len(every)))

    def one_of(self, *choices):
        return self.random.choice(choices)

    def address(self):
        return 0x700000000 + self.random.randrange(12) * 4 * MIB

    def size(self):
        return self.one_of(512, 1000, MIB, 2 * MIB, 4 * MIB, 5 * MIB, 8 * MIB, 20 * MIB)

    def put(self, kind, announced=False, **fields):
        self.sequence += 2
        self.time += self.random.randrange(0, 2_000_000)
        time = self.time - self.one_of(0, 0, 0, 0, 1_500_000)
        flags = ["intent"] if announced else []
        fields = {"dev": self.one_of(0, 0, 0, 1), "module": self.one_of(TORCH, TORCH, APP, SAVER),
                  "ctx": self.one_of(1, 2), "thread": self.one_of(7, 8), **fields}
        if announced:
            self.undoable.append(self.sequence)
        if not announced and self.random.random() < 0.1:
            fields["free"] = self.random.randrange(1, 60) * 128 * MIB
            flags.append("free_sampled")
        if self.random.random() < 0.04:
            fields["res"] = self.one_of(1, 2, 719)
        if flags:
            fields["flags"] = "+".join(flags)
        self.lines.append(f"{kind} seq={self.sequence} t={time} " + " ".join(f"{k}={v}" for k, v in fields.items()))

    def kind_alloc(self):
        self.put("alloc", call="cuMemAlloc_v2", addr=self.address(), size=self.size())

    def kind_free(self):
        self.put("free", True, call="cuMemFree_v2", addr=self.address())

    def kind_runtime_free(self):
        """Told by the runtime, then by the driver beneath it."""
        address = self.address()
        self.put("free", True, call="cudaFree", addr=address)
        self.lines[-1] = self.lines[-1].replace("flags=intent", "flags=intent+runtime")
        self.put("free", True, call="cuMemFree_v2", addr=address)

    def kind_undo(self):
        if self.undoable:
            self.put("undo", handle=self.one_of(*self.undoable[-6:]), res=self.one_of(0, 1, 4, 719), call="cuMemFree_v2")

    def kind_host(self):
        self.put(self.one_of("host_alloc", "host_register"), call="cuMemHostAlloc", addr=self.address(), size=self.size())

    def kind_host_free(self):
        self.put(self.one_of("host_free", "host_unregister"), True, call="cuMemFreeHost", addr=self.address())

    def kind_framework(self):
        device = self.one_of(0, 0, 1)
        self.reserved[device] = max(self.reserved[device] + self.one_of(0, 0, 4 * MIB, 20 * MIB, -4 * MIB), 0)
        totals = self.one_of((self.random.randrange(1, 40) * MIB, self.reserved[device]), (UNKNOWN, UNKNOWN))
        self.put(self.one_of("fw_alloc", "fw_alloc", "fw_free"), dev=device, module=TORCH, addr=self.address(),
                 size=self.size(), x0=totals[0], x1=totals[1])

    def kind_by_place(self):
        self.put(self.one_of("fw_alloc", "fw_free"), dev=-1, module=ONEFLOW, addr=self.address(), size=self.size(),
                 call="_ZN7oneflow2vm12BinAllocatorX", x0=UNKNOWN, x1=UNKNOWN)

    def kind_pool(self):
        figures = self.one_of((64 * MIB, self.random.randrange(0, 40) * MIB), (UNKNOWN, UNKNOWN))
        self.put("pool_alloc", call="cuMemAllocAsync", addr=self.address(), size=self.size(), pool=self.one_of(0, 5, 6),
                 x0=figures[0], x1=figures[1])

    def kind_pool_free(self):
        self.put("pool_free", True, call="cuMemFreeAsync", addr=self.address(), pool=self.one_of(0, 5, 6))

    def kind_pool_other(self):
        self.put(self.one_of("pool_create", "pool_destroy", "pool_trim"), pool=self.one_of(5, 6), x0=self.one_of(0, 32 * MIB),
                 x1=self.one_of(0, MIB))

    def kind_reserve(self):
        self.put("reserve", addr=self.address(), size=self.one_of(8, 32) * MIB)

    def kind_unreserve(self):
        self.put("unreserve", True, addr=self.address(), size=8 * MIB)

    def kind_create(self):
        self.put(self.one_of("phys_create", "phys_create", "phys_import", "multicast_create"),
                 handle=self.random.randrange(1, 5), size=self.one_of(4, 8, 20) * MIB, x0=self.one_of(1, 1, 1, 2))

    def kind_release(self):
        self.put("phys_release", True, handle=self.random.randrange(1, 5))

    def kind_retain(self):
        self.put("phys_retain", handle=self.random.randrange(1, 7), addr=self.address())

    def kind_map(self):
        self.put("map", addr=self.address(), size=self.one_of(4, 8, 20) * MIB, handle=self.random.randrange(1, 5))

    def kind_unmap(self):
        self.put("unmap", True, addr=self.address(), size=self.one_of(4, 8, 20) * MIB)

    def kind_array(self):
        self.put("array_create", handle=self.random.randrange(1, 4), size=self.size())

    def kind_array_destroy(self):
        self.put("array_destroy", True, handle=self.random.randrange(1, 4))

    def kind_ipc(self):
        self.put("ipc_open", addr=self.address(), size=self.size())

    def kind_ipc_close(self):
        self.put("ipc_close", True, addr=self.address())

    def kind_context(self):
        name = self.one_of("context_create", "context_retain")
        self.put(name)

    def kind_context_end(self):
        self.put(self.one_of("context_destroy", "context_release", "context_reset"), self.one_of(True, False))

    def kind_graph_node(self):
        self.put("graph_alloc_node", addr=self.address(), size=self.size())

    def kind_sample(self):
        self.put("sample", size=16 << 30, free=self.random.randrange(1, 120) * 128 * MIB)

    def kind_mem_info(self):
        self.put("mem_info", size=16 << 30, free=self.random.randrange(1, 120) * 128 * MIB, dur=400_000)

    def kind_other_process(self):
        device = self.one_of(0, 1)
        if self.random.random() < 0.3:
            self.put("other_process", dev=device, handle=0, size=self.random.randrange(0, 3))
        self.put("other_process", dev=device, handle=self.one_of(100, 200, 201, 202), size=self.one_of(0, 64, 300) * MIB)

    def kind_oom(self):
        self.put("fw_oom", module=TORCH, size=self.size(), x0=MIB, x1=4 * MIB)

    def kind_flush(self):
        self.lines.append("flush")


def random_script(seed, events=160):
    script = Script(seed)
    while len(script.lines) < events:
        getattr(script, "kind_" + script.random.choice(script.kinds))()
    return HEAD + "\n".join(script.lines) + "\nprocess_end dev=-1 handle=1\n"
