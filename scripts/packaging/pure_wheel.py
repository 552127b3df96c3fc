#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the wheel for any system, in which Python alone reads traces: pure_wheel.py PAGE OUT-FOLDER VERSION,
prints its path. PAGE is the template of the HTML page that the build puts together (formats/html_page.html).
It is vramscope's, too, for where the native wheel does not fit: pip takes whichever does."""

import os
import re
import sys

from wheel import HERE, PYTHON, Wheel

SOURCE = os.path.join(HERE, "..", "..")
READER = os.path.join(HERE, "reader")

METADATA = """\
Metadata-Version: 2.1
Name: vramscope
Version: {version}
Summary: Where did the GPU memory go? Reads traces of CUDA device memory
License: Apache-2.0
Requires-Python: >=3.8
Requires-Dist: zstandard >= 0.19 ; python_version < "3.14"
Provides-Extra: fast
Requires-Dist: xxhash ; extra == "fast"
Classifier: Framework :: Pytest
Classifier: Operating System :: OS Independent
Classifier: Topic :: Software Development :: Debuggers
Description-Content-Type: text/markdown

The part of vramscope that reads traces, in Python alone, for macOS, Windows and whatever has no native
wheel:

    vramscope report TRACE
    vramscope html TRACE -o FILE

What cannot be computed exactly from the events alone is left to the native vramscope, which also records.
`vramscope[fast]` checks long traces faster.
"""

WHEEL = """\
Wheel-Version: 1.0
Generator: vramscope scripts/package
Root-Is-Purelib: true
Tag: py3-none-any
"""

ENTRY_POINTS = """\
[console_scripts]
vramscope = vramscope.__main__:main

[pytest11]
vramscope = vramscope.pytest_plugin
"""

ERRORS = '''\
# SPDX-License-Identifier: Apache-2.0
"""Names of results, from formats/cuda_errors.c."""

DRIVER = {driver}
RUNTIME = {runtime}
NCCL = {nccl}
NCCL_RESULTS = {beyond}


def error_name(call, result):
    names = NCCL if result > NCCL_RESULTS else RUNTIME if call.startswith("cuda") else DRIVER
    return names.get(result, f"error {{result}}")
'''


def read(*path):
    with open(os.path.join(SOURCE, *path), encoding="utf-8") as file:
        return file.read()


def error_names():
    """The module cuda_errors, from the tables of the native readers."""
    source = read("formats", "cuda_errors.c")
    tables = {}
    for name in ("driver", "runtime", "nccl"):
        body = re.search(name + r"_results\[\] = \{(.*?)\n\};", source, re.DOTALL)
        rows = re.findall(r'\{(?:VS_NCCL_RESULTS \+ )?(\d+), "(\w+)"\}', body[1]) if body else []
        if len(rows) < 5:
            raise OSError(f"formats/cuda_errors.c: no table {name}_results as expected")
        tables[name] = {int(value): text for value, text in rows}
    beyond = re.search(r"VS_NCCL_RESULTS\s*=?\s*(\d+)", read("formats", "record.h") + read("formats", "trace.h"))
    if beyond is None:
        raise OSError("formats: VS_NCCL_RESULTS is not where it was")
    base = int(beyond[1])
    tables["nccl"] = {value + base if value < base else value: text for value, text in tables["nccl"].items()}
    return ERRORS.format(beyond=base, **tables)


def make(page, out, version):
    os.makedirs(out, exist_ok=True)
    with open(page, "rb") as file:
        template = file.read()
    if b"@DATA@" not in template:
        raise OSError(f"{page} is no template: built without D3? scripts/install-deps, then build again")
    path = os.path.join(out, f"vramscope-{version}-py3-none-any.whl")
    info = f"vramscope-{version}.dist-info"
    wheel = Wheel(path, info)
    wheel.add_folder(READER, ".")
    for name in ("__init__.py", "pytest_plugin.py"):
        with open(os.path.join(PYTHON, "vramscope", name), "rb") as file:
            wheel.add(f"vramscope/{name}", file.read())
    wheel.add("vramscope_reader/page.html", template)
    wheel.add("vramscope_reader/cuda_errors.py", error_names().encode())
    wheel.add("vramscope_reader/VERSION", f"{version}\n".encode())
    wheel.add(f"{info}/METADATA", METADATA.format(version=version).encode())
    wheel.add(f"{info}/WHEEL", WHEEL.encode())
    wheel.add(f"{info}/entry_points.txt", ENTRY_POINTS.encode())
    wheel.close()
    return path


def main():
    if len(sys.argv) != 4:
        print(__doc__, file=sys.stderr)
        return 2
    try:
        print(make(*sys.argv[1:]))
    except OSError as error:
        print(f"pure_wheel.py: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
