# Runs a step again, and prints what a repair may need to know about its exception. It is put after
# `facts.py`, and what follows it calls `probe`. The step fails again, so nothing that it did is kept.


def probe(program, step, scene, mark, limit):
    """`step` and `scene` are a file name and a source: of the step, and of the one whose code raised."""
    try:
        code = compile(step[1], step[0], "exec", dont_inherit=True)
        exec(code, program)
    except BaseException as error:
        import json

        report = describe(error, scene[0], scene[1].encode("utf-8", "replace"))
        encoded = json.dumps(report)
        if len(encoded) > limit:
            for bulky in ("attributes", "keys", "globals", "locals", "builtins", "operands", "stdlib"):
                report.pop(bulky, None)
            encoded = json.dumps(report)
        print(mark + encoded[:limit] + mark, flush=True)
        raise
    raise SystemExit("it succeeded")
