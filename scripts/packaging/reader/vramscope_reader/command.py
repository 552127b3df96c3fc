# SPDX-License-Identifier: Apache-2.0
"""The command `vramscope` of the wheel for any system: report and html."""
import argparse
import json
import os
import sys

from . import version
from .packing import NoZstd
from .trace import NotATrace

ABOUT = """Reads traces of vramscope in Python alone, on any system. What it cannot compute exactly is not
shown and left to the native vramscope (Linux), which also records."""


def _parser():
    parser = argparse.ArgumentParser(prog="vramscope", description=ABOUT)
    parser.add_argument("--version", action="version", version=f"vramscope {version()} (reader in Python)")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    report = commands.add_parser("report", help="what was held, at the peak and at the end",
                                 description="What was held at the peak and at the end, and by which lines.")
    report.add_argument("trace", metavar="TRACE", help=".vscope, .vscope.gz, .vscope.zst or the .zip of vramscope pack")
    report.add_argument("--json", action="store_true", help="fields of vramscope-report/1")
    html = commands.add_parser("html", help="one self-contained page", description="Writes one self-contained page.")
    html.add_argument("trace", metavar="TRACE", help="as of report")
    html.add_argument("-o", "--output", metavar="FILE", required=True, help="- for stdout")
    html.add_argument("--force", action="store_true", help="overwrite FILE")
    return parser


def _say(text):
    print(f"vramscope: {text}", file=sys.stderr)


def _report(arguments):
    from .figures import Figures, report_json
    from .text import report_text
    figures = Figures(arguments.trace)
    if arguments.json:
        text = json.dumps(report_json(figures), indent=1) + "\n"
    else:
        text = report_text(figures)
    sys.stdout.buffer.write(text.encode("utf-8", "replace"))
    sys.stdout.buffer.flush()
    return figures


def _html(arguments):
    from .page import write_page
    if arguments.output == "-":
        return write_page(arguments.trace, version(), sys.stdout.buffer)
    if os.path.exists(arguments.output) and not arguments.force:
        raise FileExistsError(17, "it is there already: give another name, or --force", arguments.output)
    partial = arguments.output + ".part"
    try:
        with open(partial, "wb") as out:
            figures = write_page(arguments.trace, version(), out)
        os.replace(partial, arguments.output)
    except BaseException:
        if os.path.exists(partial):
            os.remove(partial)
        raise
    return figures


def main():
    arguments = _parser().parse_args()
    try:
        figures = (_report if arguments.command == "report" else _html)(arguments)
        trace = figures.trace
        trace.close()
        if not trace.is_whole():
            _say(f"{trace.path} is cut off or damaged: everything readable is shown")
            return 1
        return 0
    except NotATrace as error:
        _say(error)
    except NoZstd as error:
        _say(f"{arguments.trace} cannot be read: {error}")
    except BrokenPipeError:
        sys.stderr.close()
    except OSError as error:
        _say(f"{error.filename or arguments.trace}: {error.strerror or error}")
    except MemoryError:
        _say(f"{arguments.trace}: not enough memory")
    return 1
