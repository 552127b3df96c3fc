# SPDX-License-Identifier: Apache-2.0
"""Who asks for memory: the library or program, by the file name of its module, and whether it is a
caching allocator, whose driver memory is segments (docs/numbers.md, Bands)."""
import re

# library, its calls that report blocks, the one that takes a segment, whether its blocks name no device
PYTORCH = ("libc10_", "_ZN3c10", None, False)
ONEFLOW = ("liboneflow", "_ZN7oneflow2vm12BinAllocator",
           "_ZN7oneflow2vm12BinAllocatorINS0_14ThreadSafeLockEE29AllocateBlockToExtendTotalMemEm", True)
LAYERS = (PYTORCH, ONEFLOW)
SHOWN = {"libc10_cuda": "PyTorch", "liboneflow": "OneFlow"}


def owner_of(path):
    """"/x/libcudart-1a2b3c4d.so.12" is "libcudart"; an extension module goes by its package."""
    if not path:
        return "unknown"
    base = path.rsplit("/", 1)[-1]
    extension = ".cpython-" in base or ".abi3.so" in base
    if extension:
        for folder in ("/site-packages/", "/dist-packages/"):
            part = path.partition(folder)[2]
            if "/" in part:
                package = part.split("/", 1)[0]
                return "cupy" if package == "cupy_backends" else package[:63]
    cut = base.find("." if extension else ".so")
    name = base if cut < 0 else base[:cut]
    return re.sub(r"-[0-9a-f]{8}$", "", name)[:63]


def is_bridge(owner):
    """Calls C for Python: who called through it is in the stack."""
    return owner in ("libffi", "_ctypes", "_cffi_backend", "cffi", "cuda")


def owner_behind(bridge, frames):
    """The program or the package whose Python code, the innermost first, is nearest to the call."""
    for frame in frames:
        if frame.own:
            return "the program"
        part = re.search(r"-packages/([^/]*)(/?)", frame.file or "")
        package = part and (part[1] if part[2] else part[1].split(".", 1)[0])[:63]
        if package and not is_bridge(package):
            return package
    return bridge


def is_framework(owner):
    return owner.startswith(PYTORCH[0])


def layer_of_call(call):
    return next((layer for layer in LAYERS if call.startswith(layer[1])), None)


def takes_segments(call):
    layer = layer_of_call(call)
    return layer is not None and layer[2] == call
