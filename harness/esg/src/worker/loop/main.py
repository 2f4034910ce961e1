"""The worker's loop: one request, one reply, until the host closes the pipe.

A step may break anything it can reach. So the loop uses only what was bound at the start, and signs
replies with a nonce that only its own frame holds.
"""

import random
import sys
import time
from gc import disable, freeze
from os import _exit, getpid

from _harness.loop.capture import Streams
from _harness.world.channels import Channels
from _harness.world.packages import enter_environment
from _harness.loop.endings import clip, type_name
from _harness.loop.guard import Guard, Lifeline
from _harness.loop.show import as_json, show
from _harness.loop.step import Steps
from _harness.loop.texts import Moved, remember
from _harness.values.compat import check
from _harness.values.units import Graph
from _harness.loop.wire import Closed, TooLarge, read_frame, reading, write_frame

if sys.version_info >= (3, 12):
    from _harness.track.monitoring import Tracker
else:
    from _harness.track.mapping import Tracker

JSON_BYTES = 16 << 20
BLOB_BYTES = 256 << 20
OUTPUT_BYTES = 1 << 20


def prepare():
    """Makes the process the same for every worker, before it knows anything of the user's."""
    time.tzset()
    random.seed(0)


def start(hello, fds):
    """Builds the worker. Returns the loop, which never returns."""
    check()
    limits = {**hello["limits"], "strictness": hello.get("strictness"), "ambient": hello.get("ambient") or ()}
    scratch = hello["scratch"]
    enter_environment()
    sys.path.insert(0, scratch)
    sys.path.extend(hello["baseline"].get("path") or ())
    sys.argv[:] = [""]
    sys.orig_argv = [sys.executable]
    streams = Streams(limits.get("output_bytes") or OUTPUT_BYTES)
    streams.install()
    tracker = Tracker(scratch)
    sys.modules["__main__"] = tracker.main
    channels = Channels(scratch, tracker.namespace, limits)
    channels.attach(streams, tracker)
    for event in tracker.EVENTS:
        channels.events.listen(event, tracker.rebound)
    graph = Graph(tracker.namespace, channels.modules, limits)
    worker = Worker(tracker, channels, graph, streams, Guard(), Lifeline(fds[2]))
    # Objects that exist by now stay, so the collector skips them. Steps turn it on.
    freeze()
    disable()
    return lambda: serve(worker, fds[0], fds[1])


def serve(worker, requests, replies):
    """Answers requests until there are none."""
    pid = getpid()
    requests = reading(requests)
    while True:
        request, blob = _next(requests)
        nonce = request.pop("nonce")
        op = request.pop("op")
        try:
            reply, parts = worker.answer(op, request, blob)
        except BaseException as error:
            reply, parts = {"error": _report(error)}, []
        if getpid() != pid:
            # A forked child of a step that returned here instead of exiting.
            _exit(0)
        _reply(replies, op, nonce, reply, parts)
        request = blob = reply = parts = nonce = None


def _next(requests):
    """The next request and its blob."""
    try:
        return read_frame(requests)
    except (Closed, OSError, ValueError):
        # The host has ended, or a step closed or read the pipe.
        _exit(0)


def _reply(replies, op, nonce, reply, parts):
    try:
        try:
            reply = {**reply, "op": op, "nonce": nonce}
            write_frame(replies, reply, parts, JSON_BYTES, BLOB_BYTES)
        except (TooLarge, TypeError, ValueError) as error:
            reply = {"error": _report(error), "op": op, "nonce": nonce}
            write_frame(replies, reply, [], JSON_BYTES, BLOB_BYTES)
    except OSError:
        _exit(0)


def _report(error):
    """The report of a failure of the worker itself."""
    where, traceback = "", error.__traceback__
    while traceback is not None:
        code = traceback.tb_frame.f_code
        where += " > %s:%s %s" % (code.co_filename, traceback.tb_lineno, code.co_name)
        traceback = traceback.tb_next
    return clip("%s: %s%s" % (type_name(type(error)), error, where[-1000:]))


class Worker:
    """The state behind the replies."""

    def __init__(self, tracker, channels, graph, streams, guard, lifeline):
        self._namespace = tracker.namespace
        self._channels = channels
        self._graph = graph
        # The keys of units that belong to the channels: files and process state.
        self._keys = set()
        self._moved = Moved()
        self._steps = Steps(tracker, channels, graph, streams, guard, lifeline)

    def answer(self, op, request, blob):
        """The reply to a request and the parts of its blob."""
        if op == "run":
            reply, parts, keys = self._steps.run(request)
            self._keys.update(keys)
            return reply, parts
        self._steps.disturb()
        return self._answer(op, request, blob)

    def _answer(self, op, request, blob):
        if op == "sync":
            return self._sync(request, blob), []
        if op == "graft":
            return self._steps.graft(request, blob)
        if op == "sweep":
            return self._sweep(), []
        if op == "value":
            return self._value(request), []
        raise ValueError("there is no request `%s`" % op)

    def _sync(self, request, blob):
        graph, channels = self._graph, self._channels
        # The sources of steps that have not run here but whose functions may be loaded, so that
        # tracebacks show their lines.
        for step, source in request.get("sources", {}).items():
            remember(step, source)
        for step, source in request.get("moved", {}).items():
            self._moved.to(step, source)
        with channels.unwritten():
            names, others = _split(request.get("drop", ()))
            graph.drop(names)
            for entity in others:
                channels.drop(entity)
            names, others = self._owners(request.get("stash", ()))
            graph.stash(names)
            for key in others:
                channels.stash(key)
            names, others = self._owners(request.get("forget", ()))
            graph.forget(names)
            for key in others:
                channels.forget(key)
                self._keys.discard(key)
        graph.alias(request.get("alias", ()))
        own = []
        for item in request.get("unstash", ()):
            if item["key"] in self._keys:
                channels.unstash(item["key"], item["members"])
            else:
                own.append(item)
        # Values refer to modules.
        channels.settle()
        graph.unstash(own)
        failed = self._load(request.get("load", ()), blob)
        channels.settle()
        if request.get("moved") or request.get("load"):
            self._moved.apply()
        for entity in request.get("order", ()):
            name = entity[2:]
            if dict.__contains__(self._namespace, name):
                dict.__setitem__(self._namespace, name, dict.pop(self._namespace, name))
        return {"failed": failed}

    def _load(self, items, blob):
        failed, own = [], []
        for item in items:
            if item["blob"] is None:
                failed.append([item["key"], "there is no blob"])
                continue
            at, length = item["blob"]
            data = blob[at : at + length]
            if any(_of_channels(member["entity"]) for member in item["members"]):
                why = self._channels.load(item, data)
                if why is None:
                    self._keys.add(item["key"])
                else:
                    failed.append([item["key"], why])
            else:
                own.append({**item, "blob": data})
        self._channels.settle()
        failed.extend(self._graph.load(own))
        return failed

    def _owners(self, keys):
        return [key for key in keys if key not in self._keys], [
            key for key in keys if key in self._keys
        ]

    def _sweep(self):
        units = self._graph.sweep()
        modules = {
            member["entity"]
            for unit in units
            for member in unit["members"]
            if member["entity"].startswith("m:")
        }
        others, unattributed = self._channels.sweep(modules)
        return {"units": [{**unit, "blob": None} for unit in (*units, *others)], "unattributed": unattributed}

    def _value(self, request):
        name, limit = request["name"], request["limit"]
        if not dict.__contains__(self._namespace, name):
            return {"repr": None, "type": None}
        value = dict.__getitem__(self._namespace, name)
        reply = {"repr": show(value, limit), "type": type_name(type(value))}
        json = as_json(value, limit)
        if json is not None:
            reply["json"] = json[0]
        return reply


def _of_channels(entity):
    return entity.startswith(("f:", "p:"))


def _split(entities):
    """The names' entities, and the channels' entities."""
    return [entity for entity in entities if not _of_channels(entity)], [
        entity for entity in entities if _of_channels(entity)
    ]
