# The worker's first lines, passed to the interpreter with `-c`. They read the hello frame, move the
# pipes out of a step's reach, load the sources in the frame, and call `main`.
def boot():
    import builtins
    import fcntl
    import json
    import marshal
    import os
    import resource
    import struct
    import sys
    import types

    # In bytes: the capacity requested for a pipe.
    PIPE = 256 << 10

    def exactly(length, pipe=0):
        data = b""
        while len(data) < length:
            part = os.read(pipe, length - len(data))
            if not part:
                os._exit(0)
            data += part
        return data

    json_len, blob_len = struct.unpack("<II", exactly(8))
    hello = json.loads(exactly(json_len))
    compiled = exactly(blob_len)
    nonce = hello.pop("nonce")
    limits = hello["limits"]

    # High numbers, so that a step that opens or closes low descriptors does not hit them.
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    most = 1024 if most == resource.RLIM_INFINITY else min(most, 1024)
    fds = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, most - 8) for fd in (0, 1, 2)]
    for fd in fds[:2]:
        # Large pipes make values faster to transfer. If the system refuses, transfers are slower.
        try:
            fcntl.fcntl(fd, getattr(fcntl, "F_SETPIPE_SZ", -1), PIPE)
        except OSError:
            pass
    null = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    if null > 2:
        os.close(null)

    def answer(reply, blob=b""):
        reply = dict(reply, op="hello", nonce=nonce)
        data = json.dumps(reply).encode("ascii")
        data = struct.pack("<II", len(data), len(blob)) + data + blob
        while data:
            data = data[os.write(fds[1], data) :]

    if sys.flags.hash_randomization:
        # `-I` and `-E` ignore the variable.
        answer({"error": "hashes are random [start with PYTHONHASHSEED=0 and `-s -P -S -B`]"})
        os._exit(1)

    sources, codes, loaded, prefix = hello.pop("sources"), {}, {}, "_harness."
    # Compiled modules are valid for the same interpreter only.
    build = (sys.version + " " + sys.implementation.cache_tag).encode("ascii") + b"\n"
    if compiled:
        if not compiled.startswith(build):
            answer({"error": "the interpreter has changed [start a new worker]"})
            os._exit(1)
        codes = marshal.loads(compiled[len(build) :])
    # The worker's modules are not in `sys.modules` and have builtins of their own, so a step's changes
    # of `builtins` or `sys.modules` do not affect them.
    own = dict(vars(builtins))
    # `id` notifies every audit hook, which is slow. `object.__hash__` derives from the address too.
    own["id"] = object.__hash__
    usual, modules = own["__import__"], sys.modules

    def load(name):
        if name not in loaded:
            file = prefix + name
            module = loaded[name] = types.ModuleType(file)
            module.__dict__["__builtins__"] = own
            if name not in codes:
                codes[name] = compile(sources[name], "<%s>" % file, "exec", dont_inherit=True)
            exec(codes[name], module.__dict__)
        return loaded[name]

    def __import__(name, globals=None, locals=None, fromlist=(), level=0):
        if name.startswith(prefix):
            name = name[len(prefix) :]
            if "." in name:
                return load(name)
            # `from FOLDER import MODULE`
            return types.SimpleNamespace(**{one: load(name + "." + one) for one in fromlist})
        # A pickler asks so for the module of each class that it names, thousands of times.
        if type(fromlist) is list and name in modules:
            return modules[name]
        return usual(name, globals, locals, fromlist, level)

    own["__import__"] = __import__
    try:
        # Its imports load everything, so nothing is compiled while a step's limits apply.
        load("loop.main")
        os.environ.clear()
        os.environ.update(hello["baseline"]["env"])
        load("loop.main").prepare()
        if hello.pop("waits", False):
            # By now it is in its sandbox, so its directory may move. It waits until it takes the place of
            # another process, which uses scratch.
            answer({})
            exactly(1, fds[0])
        for name, kinds in (
            ("address_space", ["RLIMIT_AS"]),
            ("cpu_seconds", ["RLIMIT_CPU"]),
            ("file_size", ["RLIMIT_FSIZE"]),
            ("open_files", ["RLIMIT_NOFILE"]),
            ("core", ["RLIMIT_CORE"]),
        ):
            limit = 0 if name == "core" else limits.get(name)
            for kind in kinds if limit is not None else ():
                kind = getattr(resource, kind)
                hard = resource.getrlimit(kind)[1]
                if hard != resource.RLIM_INFINITY:
                    limit = min(limit, hard)
                resource.setrlimit(kind, (limit, limit))
        os.chdir(hello["scratch"])
        serve = load("loop.main").start(hello, fds)
    except BaseException as error:
        answer({"error": "the worker does not start: %s: %s" % (type(error).__name__, error)})
        os._exit(1)
    answer(
        {
            "python": "%d.%d.%d" % sys.version_info[:3],
            "implementation": sys.implementation.name,
            "protocol": 1,
            "prefix": sys.base_prefix,
            "pid": os.getpid(),
        },
        build + marshal.dumps(codes) if hello.get("keep") else b"",
    )
    sources.clear()
    codes.clear()
    return serve


boot()()
