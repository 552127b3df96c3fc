#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the wheel from an installed prefix: wheel.py PREFIX OUT-FOLDER VERSION, prints its path. The
platform tag is what the programs' symbol versions allow, so that pip refuses it where they would not
load."""

import base64
import csv
import hashlib
import io
import os
import platform
import sys
import time
import zipfile

from glibc import Unfit, oldest_glibc

HERE = os.path.dirname(os.path.abspath(__file__))
PYTHON = os.path.join(HERE, "python")
README = os.path.join(HERE, "..", "..", "README.md")

METADATA = """\
Metadata-Version: 2.1
Name: vramscope
Version: {version}
Summary: Where did the GPU memory go? A profiler of CUDA device memory
License: Apache-2.0
Requires-Python: >=3.8
Classifier: Framework :: Pytest
Classifier: Operating System :: POSIX :: Linux
Classifier: Topic :: Software Development :: Debuggers
Description-Content-Type: text/markdown

"""

WHEEL = """\
Wheel-Version: 1.0
Generator: vramscope scripts/package
Root-Is-Purelib: false
Tag: {tag}
"""

ENTRY_POINTS = """\
[console_scripts]
vramscope = vramscope.__main__:main

[pytest11]
vramscope = vramscope.pytest_plugin
"""


class Wheel:
    """A wheel being written; close() adds the list of what is in it."""

    def __init__(self, path, info):
        self.file = zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED)
        self.info = info
        self.rows = []
        since = int(os.environ.get("SOURCE_DATE_EPOCH", "315532800"))
        self.date = time.gmtime(max(since, 315532800))[:6]

    def _write(self, name, data, mode):
        entry = zipfile.ZipInfo(name, self.date)
        entry.compress_type = zipfile.ZIP_DEFLATED
        entry.external_attr = (0o100000 | mode) << 16
        self.file.writestr(entry, data)

    def add(self, name, data, mode=0o644):
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        self.rows.append((name, f"sha256={digest}", len(data)))
        self._write(name, data, mode)

    def add_folder(self, folder, below):
        for where, folders, names in os.walk(folder):
            folders[:] = sorted(name for name in folders if name != "__pycache__")
            for name in sorted(names):
                path = os.path.join(where, name)
                with open(path, "rb") as file:
                    data = file.read()
                mode = 0o755 if os.access(path, os.X_OK) else 0o644
                self.add(os.path.normpath(f"{below}/{os.path.relpath(path, folder)}"), data, mode)

    def close(self):
        text = io.StringIO()
        rows = csv.writer(text, lineterminator="\n")
        rows.writerows(self.rows)
        rows.writerow((f"{self.info}/RECORD", "", ""))
        self._write(f"{self.info}/RECORD", text.getvalue().encode(), 0o644)
        self.file.close()


def make(prefix, out, version):
    major, minor = oldest_glibc(prefix)[:2]
    tag = f"py3-none-manylinux_{major}_{minor}_{platform.machine()}"
    path = os.path.join(out, f"vramscope-{version}-{tag}.whl")
    info = f"vramscope-{version}.dist-info"
    wheel = Wheel(path, info)
    wheel.add_folder(PYTHON, ".")
    for part in ("bin", "lib", "include"):
        wheel.add_folder(os.path.join(prefix, part), f"vramscope/{part}")
    wheel.add_folder(os.path.join(prefix, "share"), f"vramscope-{version}.data/data/share")
    with open(README, encoding="utf-8") as file:
        wheel.add(f"{info}/METADATA", (METADATA.format(version=version) + file.read()).encode())
    wheel.add(f"{info}/WHEEL", WHEEL.format(tag=tag).encode())
    wheel.add(f"{info}/entry_points.txt", ENTRY_POINTS.encode())
    wheel.close()
    return path


def main():
    if len(sys.argv) != 4:
        print(__doc__, file=sys.stderr)
        return 2
    try:
        print(make(*sys.argv[1:]))
    except (Unfit, OSError) as error:
        print(f"wheel.py: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
