# Runs a step again, and prints what a repair may need to know about its exception. It is put after
# `facts.py`, and what follows it calls `probe`. The step fails again, so nothing that it did is kept.


def probe(program, source, file, mark, limit):
    try:
        code = compile(source, file, "exec", dont_inherit=True)
        exec(code, program)
    except BaseException as error:
        import json

        report = describe(error, file, source.encode("utf-8", "replace"))
        encoded = json.dumps(report)
        if len(encoded) > limit:
            for bulky in ("attributes", "keys", "globals", "locals", "builtins", "operands", "stdlib"):
                report.pop(bulky, None)
            encoded = json.dumps(report)
        print(mark + encoded[:limit] + mark, flush=True)
        raise
    raise SystemExit("it succeeded")
