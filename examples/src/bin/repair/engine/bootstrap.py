# Runs one script as `__main__` under limits.
#
# Usage: bootstrap.py SCRIPT REPORT CPU_SECONDS MEMORY_BYTES
#
# After an uncaught exception it leaves a bounded JSON report in REPORT, with the
# facts of `facts.py`: what was visible, what the object offers, which keys the
# mapping has.


SPARE_MEMORY = 64 * 1024 * 1024
FILE_BYTES = 32 * 1024 * 1024
REPORT_BYTES = 200_000


def limit(cpu, memory):
    try:
        import resource
    except ImportError:  # not a Unix
        return

    def put(which, soft, hard):
        try:
            resource.setrlimit(which, (soft, hard))
        except (ValueError, OSError):
            pass  # a tighter limit is already in force, or the system has none

    put(resource.RLIMIT_CORE, 0, 0)
    put(resource.RLIMIT_FSIZE, FILE_BYTES, FILE_BYTES)
    put(resource.RLIMIT_CPU, cpu, cpu + 1)
    # The spare part is for the report after a MemoryError.
    put(resource.RLIMIT_AS, memory, memory + SPARE_MEMORY)


def use_spare_memory():
    try:
        import resource

        hard = resource.getrlimit(resource.RLIMIT_AS)[1]
        resource.setrlimit(resource.RLIMIT_AS, (hard, hard))
    except Exception:
        pass


def write_report(error, name, source, path):
    import json

    report = describe(error, name, source)
    encoded = json.dumps(report)
    if len(encoded) > REPORT_BYTES:
        for bulky in ("attributes", "keys", "globals", "locals", "builtins", "operands"):
            report.pop(bulky, None)
        encoded = json.dumps(report)
    with open(path, "w", encoding="ascii") as file:
        file.write(encoded)


def main():
    import linecache
    import os
    import types

    script, report, cpu, memory = sys.argv[1:]
    folder, name = os.path.split(script)
    with open(script, "rb") as file:
        source = file.read()
    os.chdir(folder)
    sys.path[0] = folder
    sys.argv = [name]
    module = types.ModuleType("__main__")
    module.__file__ = name
    module.__builtins__ = builtins
    sys.modules["__main__"] = module
    shown = source.decode("utf-8", "replace").splitlines(True)
    linecache.cache[name] = (len(source), None, shown, name)
    if hasattr(sys.stdout, "reconfigure"):
        # What was printed before a kill should still be seen.
        sys.stdout.reconfigure(line_buffering=True)
    limit(int(cpu), int(memory))
    try:
        exec(compile(source, name, "exec", dont_inherit=True), module.__dict__)
        return 0
    except SystemExit:
        raise
    except BaseException as error:
        use_spare_memory()
        try:
            import traceback

            trace = error.__traceback__
            traceback.print_exception(type(error), error, trace.tb_next if trace else None)
        except BaseException:
            pass
        try:
            write_report(error, name, source, report)
        except BaseException:
            pass
        return 1


# The old `__main__` must live on: the functions above are its contents.
KEPT = sys.modules["__main__"]
sys.exit(main())
