# SPDX-License-Identifier: Apache-2.0
"""Traces as people send them: as they are, or packed with gzip, zstd or zip. What is packed is
unpacked into a file without a name; where it is cut or damaged, what came before is kept."""
import struct
import tempfile
import zlib

PIECE = 1 << 18
TRACE_MAGIC = b"\x89VSCOPE\n"
ZIP_MEMBER, ZIP_DIRECTORY = b"PK\3\4", b"PK\1\2"


class NoZstd(Exception):
    """Nothing here unpacks zstd."""

    def __str__(self):
        return "no module that unpacks zstd: pip install zstandard"


def _zstd_of_python():
    """(unpacks one frame of a known size, makes a decompressor of a stream, its errors)."""
    try:
        from compression import zstd  # Python 3.14
    except ImportError:
        try:
            from backports import zstd
        except ImportError:
            zstd = None
    if zstd is not None:
        return (lambda data, size: zstd.ZstdDecompressor().decompress(data, size + 1),
                zstd.ZstdDecompressor, (zstd.ZstdError, EOFError))
    try:
        import zstandard
    except ImportError:
        return None
    return (lambda data, size: zstandard.ZstdDecompressor().decompress(data, max_output_size=size),
            lambda: zstandard.ZstdDecompressor().decompressobj(), (zstandard.ZstdError,))


_ZSTD = _zstd_of_python()


def unpack_chunk(data, size):
    """The payload of a chunk: one zstd frame that comes to `size` bytes. ValueError when it is none."""
    if _ZSTD is None:
        raise NoZstd()
    try:
        raw = _ZSTD[0](data, size)
    except (*_ZSTD[2], MemoryError) as error:  # a damaged frame may claim any size
        raise ValueError(str(error)) from error
    if len(raw) != size:
        raise ValueError("not of the size that its header says")
    return raw


# ---- streams ----------------------------------------------------------------------------------


class Input:
    """A file read piece by piece; what a stream did not use can be given back."""

    def __init__(self, file):
        self.file = file
        self.left = b""

    def piece(self, most=PIECE):
        if not self.left:
            self.left = self.file.read(PIECE)
        out, self.left = self.left[:most], self.left[most:]
        return out

    def exactly(self, count):
        out = b""
        while len(out) < count:
            piece = self.piece(count - len(out))
            if not piece:
                break
            out += piece
        return out

    def give_back(self, data):
        self.left = data + self.left


def _copy_stream(source, out, unpacker, errors):
    """One stream to its end. True when it has one and is sound."""
    while True:
        piece = source.piece()
        if not piece:
            return False
        try:
            out.write(unpacker.decompress(piece))
        except errors:
            return False
        if getattr(unpacker, "eof", False):
            source.give_back(unpacker.unused_data)
            return True


def _gunzip(source, out):
    whole = _copy_stream(source, out, zlib.decompressobj(31), zlib.error)
    while whole:
        start = source.exactly(2)
        source.give_back(start)
        if start != b"\x1f\x8b":
            return True  # what follows the last stream is padding
        whole = _copy_stream(source, out, zlib.decompressobj(31), zlib.error)
    return False


def _unzstd(source, out):
    if _ZSTD is None:
        raise NoZstd()
    whole = True
    while whole:
        start = source.exactly(4)
        if not start:
            return True
        source.give_back(start)
        whole = _copy_stream(source, out, _ZSTD[1](), _ZSTD[2])
    return False


# ---- zip ---------------------------------------------------------------------------------------


def _stored_bytes(size, extra):
    """Of a member whose size may stand in the zip64 field."""
    while size == 0xFFFFFFFF and len(extra) >= 4:
        ident, length = struct.unpack_from("<HH", extra)
        if ident == 1 and length >= 16:
            return struct.unpack_from("<Q", extra, 12)[0]
        extra = extra[4 + length:]
    return size


def _copy_stored(source, out, left):
    while left:
        piece = source.piece(min(left, PIECE))
        if not piece:
            return False
        out.write(piece)
        left -= len(piece)
    return True


def _unzip(source, out):
    """The first member that is a trace, read from the front: a cut archive has lost its list."""
    while True:
        head = source.exactly(30)
        if head[:4] != ZIP_MEMBER or len(head) < 30:
            out.seek(0)
            out.truncate()
            return head[:4] == ZIP_DIRECTORY
        flags, method, size, name_bytes, extra_bytes = struct.unpack("<6xHH8xI4xHH", head)
        source.exactly(name_bytes)
        size = _stored_bytes(size, source.exactly(extra_bytes))
        behind = flags & 8
        out.seek(0)
        out.truncate()
        if flags & 1 or method not in (0, 8) or method == 0 and behind:
            return False
        whole = (_copy_stream(source, out, zlib.decompressobj(-15), zlib.error) if method == 8
                 else _copy_stored(source, out, size))
        out.seek(0)
        if out.read(8) == TRACE_MAGIC or not whole:
            return whole
        if behind:  # sizes and checksum, with or without their magic
            start = source.exactly(4)
            source.exactly(12 if start == b"PK\7\x08" else 8)


def open_trace(path):
    """(file, its bytes, whether it was cut where it was packed)."""
    file = open(path, "rb")
    start = file.read(4)
    file.seek(0)
    unpack = (_gunzip if start[:3] == b"\x1f\x8b\x08" else _unzstd if start == b"\x28\xb5\x2f\xfd"
              else _unzip if start == ZIP_MEMBER else None)
    whole = True
    if unpack is not None:
        with file:
            out = tempfile.TemporaryFile()
            whole = unpack(Input(file), out)
        file = out
    size = file.seek(0, 2)
    return file, size, not whole
