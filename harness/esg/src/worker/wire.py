"""Frames: `u32 json length, u32 blob length, json, blob`, little endian, over two descriptors.

Everything here is bound when the worker starts. A step may replace `os.read` or `json.dumps`, and a
frame still goes out whole or not at all.
"""

from _io import BufferedReader, FileIO
from json.decoder import JSONDecoder
from json.encoder import c_make_encoder, encode_basestring
from os import write
from struct import Struct

HEAD = Struct("<II")
# How much is written at once.
_MOST = 1 << 16

# The C halves of the json package, set up by hand: no method of a class that a step may replace is
# looked up on the way.
_scan = JSONDecoder().scan_once


def _refuse(value):
    raise TypeError("a reply holds a %s, which json has no word for" % type(value).__name__)


_encode = c_make_encoder(None, _refuse, encode_basestring, None, ":", ",", False, False, False)


class Closed(Exception):
    """The other side has closed the pipe: there is nobody to work for."""


class TooLarge(Exception):
    """A frame would be longer than the host accepts."""


def reading(fd):
    """What frames are read from. A descriptor that a step closes or another one takes is nothing to it."""
    return BufferedReader(FileIO(fd, closefd=False))


def read_exactly(requests, length):
    """Reads `length` bytes, without a copy in between; `Closed` when the pipe ends before."""
    data = requests.read(length)
    # None where a step has made the pipe one that does not wait.
    if data is None or len(data) != length:
        raise Closed
    return data


def read_frame(requests):
    """The next request and its blob part."""
    json_len, blob_len = HEAD.unpack(read_exactly(requests, HEAD.size))
    text = read_exactly(requests, json_len).decode("utf-8")
    return parse(text), read_exactly(requests, blob_len)


def write_all(fd, data):
    """Writes all of `data`, however often the pipe takes only a part."""
    view = memoryview(data)
    while view:
        view = view[write(fd, view) :]


def write_frame(fd, reply, parts, json_bytes, blob_bytes):
    """Writes a reply whose blob part is `parts` joined.

    `TooLarge` before anything is written, so that a smaller reply can follow instead.
    """
    data = dump(reply)
    length = sum(map(len, parts))
    if len(data) > json_bytes or length > blob_bytes:
        raise TooLarge("json of %d bytes, blob of %d bytes" % (len(data), length))
    head = HEAD.pack(len(data), length) + data
    if length <= _MOST:
        # At once, that the other side wakes up once.
        write_all(fd, b"".join((head, *parts)))
        return
    write_all(fd, head)
    for part in parts:
        write_all(fd, part)


def parse(text):
    """What a json text says. Text after it is an error, as is no text."""
    try:
        value, end = _scan(text, len(text) - len(text.lstrip(" \t\n\r")))
    except StopIteration as stop:
        raise ValueError("no json at %s" % stop.value) from None
    if end != len(text) and text[end:].strip(" \t\n\r"):
        raise ValueError("text after the json at %d" % end)
    return value


def dump(value):
    """The json of a value as UTF-8; `TypeError` or `ValueError` if json cannot say it.

    Python strings may hold halves of surrogate pairs, which json text must not: they are written as
    a backslash and their number.
    """
    try:
        return "".join(_encode(value, 0)).encode("utf-8")
    except UnicodeEncodeError:
        return "".join(_encode(sound(value), 0)).encode("utf-8")


def sound(value):
    """The value with every string free of surrogates."""
    kind = type(value)
    if kind is str:
        return value.encode("utf-8", "backslashreplace").decode("utf-8")
    if kind is list or kind is tuple:
        return [sound(item) for item in value]
    if kind is dict:
        return {sound(key): sound(item) for key, item in value.items()}
    return value
