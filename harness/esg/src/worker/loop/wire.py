"""Frames: `u32 json length, u32 blob length, json, blob`, little endian, over two descriptors.

Everything here is bound at the start of the worker. A step may replace `os.read` or `json.dumps`,
and a frame is still sent completely or not at all.
"""

from _io import BufferedReader, FileIO
from json.decoder import JSONDecoder
from json.encoder import c_make_encoder, encode_basestring  # type: ignore[attr-defined]
from os import write
from struct import Struct

HEAD = Struct("<II")
# The size of a write.
_MOST = 1 << 16

# The C parts of the json package, set up by hand, so that no method of a replaceable class is used.
_scan = JSONDecoder().scan_once  # type: ignore[attr-defined]


def _refuse(value):
    raise TypeError("a reply holds a %s, which json has no word for" % type(value).__name__)


_encode = c_make_encoder(None, _refuse, encode_basestring, None, ":", ",", False, False, False)


class Closed(Exception):
    """The host has closed the pipe."""


class TooLarge(Exception):
    """A frame would exceed the host's limit."""


def reading(fd):
    """The source of frames. It is unaffected if a step closes or replaces its descriptor."""
    return BufferedReader(FileIO(fd, closefd=False))


def read_exactly(requests, length):
    """Reads `length` bytes without an extra copy. `Closed` if the pipe ends before."""
    data = requests.read(length)
    # None if a step made the pipe non-blocking.
    if data is None or len(data) != length:
        raise Closed
    return data


def read_frame(requests):
    """The next request and its blob part."""
    json_len, blob_len = HEAD.unpack(read_exactly(requests, HEAD.size))
    text = read_exactly(requests, json_len).decode("utf-8")
    return parse(text), read_exactly(requests, blob_len)


def write_all(fd, data):
    """Writes all of `data`, in several parts if necessary."""
    view = memoryview(data)
    while view:
        view = view[write(fd, view) :]


def write_frame(fd, reply, parts, json_bytes, blob_bytes):
    """Writes a reply whose blob part is `parts` joined.

    Raises `TooLarge` before anything is written, so that a smaller reply can follow instead."""
    data = dump(reply)
    length = sum(map(len, parts))
    if len(data) > json_bytes or length > blob_bytes:
        raise TooLarge("json of %d bytes, blob of %d bytes" % (len(data), length))
    head = HEAD.pack(len(data), length) + data
    if length <= _MOST:
        # One write, which wakes the other side once.
        write_all(fd, b"".join((head, *parts)))
        return
    write_all(fd, head)
    for part in parts:
        write_all(fd, part)


def parse(text):
    """Parses a JSON text. Text after it is an error."""
    try:
        value, end = _scan(text, len(text) - len(text.lstrip(" \t\n\r")))
    except StopIteration as stop:
        raise ValueError("no json at %s" % stop.value) from None
    if end != len(text) and text[end:].strip(" \t\n\r"):
        raise ValueError("text after the json at %d" % end)
    return value


def dump(value):
    """A value as JSON in UTF-8; `TypeError` or `ValueError` if JSON cannot represent it.

    Python strings may hold halves of surrogate pairs, which JSON must not: they are written as a
    backslash and their number."""
    try:
        return "".join(_encode(value, 0)).encode("utf-8")
    except UnicodeEncodeError:
        return "".join(_encode(sound(value), 0)).encode("utf-8")


def sound(value):
    """The value with all surrogates in strings escaped."""
    kind = type(value)
    if kind is str:
        return value.encode("utf-8", "backslashreplace").decode("utf-8")
    if kind is list or kind is tuple:
        return [sound(item) for item in value]
    if kind is dict:
        return {sound(key): sound(item) for key, item in value.items()}
    return value
