"""A worker that speaks the protocol and tracks nothing, to test the host with a broken worker.

Steps run with `wire` in their namespace, through which they send arbitrary replies.
"""

import fcntl
import json
import os
import resource
import select
import signal
import struct
import sys


class Wire:
    """The two pipes, and the changes of the next reply."""

    def __init__(self):
        self.requests = fcntl.fcntl(0, fcntl.F_DUPFD_CLOEXEC, 40)
        self.replies = fcntl.fcntl(1, fcntl.F_DUPFD_CLOEXEC, 40)
        self.request = None
        self.change = {}
        self.blob = b""
        self.syncs = []

    def exactly(self, length):
        data = bytearray()
        while len(data) < length:
            part = os.read(self.requests, length - len(data))
            if not part:
                os._exit(0)
            data += part
        return bytes(data)

    def take(self):
        json_len, blob_len = struct.unpack("<II", self.exactly(8))
        self.request = json.loads(self.exactly(json_len))
        return self.request, self.exactly(blob_len)

    def raw(self, data):
        view = memoryview(data)
        while view:
            view = view[os.write(self.replies, view) :]

    def frame(self, reply, blob=b""):
        data = json.dumps(reply).encode()
        return struct.pack("<II", len(data), len(blob)) + data + blob

    def good(self, **changes):
        """A valid reply to the request, with `changes` applied."""
        reply = {
            "op": self.request["op"],
            "nonce": self.request["nonce"],
            "ending": {"kind": "ok"},
            "reads": [],
            "external": {},
            "wrote": {},
            "units": [],
            "dirty": [],
            "untracked": [],
            "readings": [],
            "clock": False,
            "stdout": {"at": [0, 0], "dropped": 0},
            "stderr": {"at": [0, 0], "dropped": 0},
            "micros": {"run": 1, "probe": 1},
        }
        return {**reply, **changes}

    def die_with_host(self, on):
        """While a step runs, requests are not read: a signal reports that their pipe closes."""
        flags = fcntl.fcntl(self.requests, fcntl.F_GETFL) & ~os.O_ASYNC
        if on:
            fcntl.fcntl(self.requests, fcntl.F_SETOWN, os.getpid())
            fcntl.fcntl(self.requests, 10, signal.SIGKILL)  # F_SETSIG
            flags |= os.O_ASYNC
        fcntl.fcntl(self.requests, fcntl.F_SETFL, flags)
        poll = select.poll()
        poll.register(self.requests, 0)
        if on and poll.poll(0):
            # It closed before the signal was set up.
            os._exit(0)


def limit(limits):
    for what, most in (
        (resource.RLIMIT_AS, limits["address_space"]),
        (resource.RLIMIT_FSIZE, limits["file_size"]),
        (resource.RLIMIT_NOFILE, limits["open_files"]),
        (resource.RLIMIT_CORE, 0),
    ):
        resource.setrlimit(what, (most, most))


def main():
    wire = Wire()
    space = {"wire": wire, "__name__": "__main__"}
    null = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    while True:
        request, blob = wire.take()
        base = {"op": request["op"], "nonce": request["nonce"]}
        wire.change, wire.blob = {}, b""
        op = request["op"]
        if op == "hello":
            space["hello"] = request
            if request.get("waits"):
                wire.raw(wire.frame(base))
                wire.exactly(1)
            limit(request["limits"])
            os.chdir(request["scratch"])
            reply = {
                **base,
                "python": "%d.%d.%d" % sys.version_info[:3],
                "implementation": "cpython",
                "protocol": 1,
                "prefix": sys.prefix,
                "pid": os.getpid(),
            }
        elif op == "sync":
            wire.syncs.append(request)
            failed = []
            for item in request["load"]:
                offset, length = item["blob"]
                data = blob[offset : offset + length]
                if data.startswith(b"bad"):
                    failed.append([item["key"], "it is bad"])
                else:
                    space.update((entity[2:], len(data)) for entity in item["take"])
            reply = {**base, "failed": failed}
        elif op == "run":
            wire.die_with_host(True)
            try:
                exec(compile(request["source"], "<step:%s>" % request["step"], "exec"), space)
                reply = wire.good()
            except BaseException as error:
                ending = {"kind": "raised", "type": type(error).__name__, "message": str(error)}
                reply = wire.good(ending=ending)
            wire.die_with_host(False)
        elif op == "value":
            if request["name"] in space:
                value = space[request["name"]]
                text = repr(value)[: request["limit"]]
                reply = {**base, "repr": text, "type": type(value).__name__, "json": value}
            else:
                reply = {**base, "repr": None, "type": None}
        else:
            reply = {**base, "units": [], "unattributed": ["nothing is tracked"]}
        reply.update(wire.change)
        wire.raw(wire.frame(reply, wire.blob))


main()
