# SPDX-License-Identifier: Apache-2.0
"""The process around the frames: forks, a ring without room, versions that are not known."""
import os
import sys

import lab
from lab import capture, check, here

READY, UNSUPPORTED = 1, 2


def one():
    check("one", capture(), here())


def two():
    one()
    check("two", capture(), here())


def new_records(run):
    before = lab.free.frames_records()
    run()
    return lab.free.frames_records() - before


def expect(what, ok, got):
    if not ok:
        lab.fail(what, repr(got))


def forked():
    first = new_records(two)
    lab.free.frames_forget()
    again = new_records(two)
    expect("a code object is sent once", first == 5 and again == 0, (first, again))
    child = os.fork()
    if child == 0:
        lab.free.frames_forget()
        sent, resent = new_records(two), new_records(two)
        expect("a forked child sends all again", sent == 5 and resent == 0, (sent, resent))
        os._exit(1 if lab.failures else 0)
    status = os.waitpid(child, 0)[1]
    expect("forked child", status == 0, status)
    lab.free.frames_forget()
    again = new_records(two)
    expect("and its parent does not", again == 0, again)


def full_ring():
    def unseen():
        return lab.Seen(capture())
    lab.free.frames_ring_is_full(1)
    without = unseen()
    lab.free.frames_ring_is_full(0)
    with_room = unseen()
    expect("no id without a record", without.status == -1, without.status)
    expect("a record once there is room", with_room.frames[0][0].endswith("unseen"), with_room.frames[:1])


def version():
    expected = sys.hexversion if sys.version_info >= (3, 11) else sys.hexversion | 0xf0
    seen = lab.free.frames_version()
    expect("version", seen == expected, hex(seen))
    expect("state", lab.free.frames_state() == lab.free.frames_header_state() == READY, lab.free.frames_state())


def pretended():
    """Under FRAMES_VERSION: another version's layout must be refused, or be the same."""
    pretended = int(os.environ["FRAMES_VERSION"], 16)
    minor = pretended >> 16 & 0xff
    seen = deep(20)
    state = lab.free.frames_state()
    if state == UNSUPPORTED:
        lab.free.frames_prepare()
        expect("note", seen.note == lab.UNSUPPORTED and seen.status == 0, (seen.note, seen.status))
        expect("header", lab.free.frames_header_state() == UNSUPPORTED, lab.free.frames_header_state())
        message = lab.free.frames_message().decode()
        expect("message", message.startswith("Python %d.%d " % (pretended >> 24, minor)), message)
        expect("no need to ask again", lab.free.frames_is_missing() == 0, 1)
        expect("other threads", lab.free.frames_note_of_thread(0) == lab.NONE, 1)
    print("  as %x: state %d, note %d" % (pretended, state, seen.note))
    # 3.8 to 3.10 are alike but for numbers that are as good as any; where no frame begins, nothing is read.
    return (state == UNSUPPORTED or seen.note == lab.NO_FRAME or minor == sys.version_info[1]
            or (minor <= 10 and sys.version_info < (3, 11)))


def deep(depth):
    return deep(depth - 1) if depth else lab.Seen(capture())


if "FRAMES_VERSION" in os.environ:
    lab.open_lab(loops=False)
    expect("refused", pretended(), lab.free.frames_state())
    sys.exit(bool(lab.failures))
lab.open_lab()
forked()
full_ring()
version()
sys.exit(lab.finish(6))
