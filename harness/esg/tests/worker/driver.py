"""Starts a worker as the host does, and exchanges frames with it."""

import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
WORKER = os.path.join(HERE, "..", "..", "src", "worker")
ENVIRONMENT = {"PYTHONHASHSEED": "0", "TZ": "UTC", "LC_ALL": "C.UTF-8"}
LIMITS = {
    "address_space": None,
    "cpu_seconds": 60,
    "file_size": 64 << 20,
    "open_files": 64,
    "output_bytes": 1 << 20,
    "value_bytes": 64 << 20,
    "unit_bytes": 64 << 20,
}


def sources(replaced=()):
    """The worker's files by name, without the bootstrap, and with some of them replaced."""
    found = {}
    for folder in sorted(os.listdir(WORKER)):
        if folder == "boot.py" or folder.startswith("__"):
            continue
        for file in sorted(os.listdir(os.path.join(WORKER, folder))):
            if file.endswith(".py"):
                with open(os.path.join(WORKER, folder, file), encoding="utf-8") as opened:
                    found[folder + "." + file[:-3]] = opened.read()
    return {**found, **dict(replaced)}


class Ended(Exception):
    """The worker has closed its pipe."""


class Worker:
    """A worker process and its two pipes."""

    # The worker's files as the first process compiled them.
    _compiled = b""

    def __init__(
        self, replaced=(), limits=(), flags=("-s", "-P", "-S", "-B"), compiled=None, path=(),
        python=sys.executable, **named
    ):
        usual = compiled is None and not replaced
        if usual:
            compiled = Worker._compiled
            named.setdefault("keep", not compiled)
        self.scratch = tempfile.mkdtemp()
        with open(os.path.join(WORKER, "boot.py"), encoding="utf-8") as opened:
            boot = opened.read()
        self.process = subprocess.Popen(
            [python, *flags, "-c", boot],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            # Not read. Its closing shows the worker that its host has ended.
            stderr=subprocess.PIPE,
            env=ENVIRONMENT,
        )
        self._count = 0
        self._seq = 0
        self.blob = b""
        self.hello = self.ask(
            "hello",
            compiled or b"",
            protocol=1,
            sources={} if compiled else sources(replaced),
            scratch=self.scratch,
            baseline={"env": ENVIRONMENT, "path": list(path)},
            limits={**LIMITS, **dict(limits)},
            **named,
        )
        if usual and not compiled:
            Worker._compiled = self.blob

    def send(self, op, blob=b"", **request):
        self._count += 1
        nonce = "%032x" % self._count
        data = json.dumps({"op": op, "nonce": nonce, **request}).encode()
        self.process.stdin.write(struct.pack("<II", len(data), len(blob)) + data + blob)
        self.process.stdin.flush()
        return nonce

    def receive(self):
        head = self._exactly(8)
        json_len, blob_len = struct.unpack("<II", head)
        reply = json.loads(self._exactly(json_len))
        self.blob = self._exactly(blob_len)
        return reply

    def _exactly(self, length):
        data = self.process.stdout.read(length)
        if len(data) != length:
            raise Ended
        return data

    def ask(self, op, blob=b"", **request):
        nonce = self.send(op, blob, **request)
        reply = self.receive()
        assert reply["nonce"] == nonce and reply["op"] == op, reply
        return reply

    def run(self, source, step="s", **named):
        """The reply to a step, with its output as text instead of offsets."""
        self._seq += 1
        named = {"readings": None, "bind": None, "allow": {}, **named}
        reply = self.ask("run", seq=self._seq, step=step, source=source, **named)
        if "error" not in reply:
            # Empty fields may be left out.
            reply = {"external": {}, "readings": [], "clock": False, "untracked": [], **reply}
            for name in ("stdout", "stderr"):
                at, length = reply.setdefault(name, {"at": [0, 0], "dropped": 0})["at"]
                reply[name]["text"] = self.blob[at : at + length].decode()
        return reply

    def close(self):
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.stderr.close()
        self.process.kill()
        self.process.wait()
        shutil.rmtree(self.scratch, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
