flags = {"a": true, "b": False, "c": null}
print([name for name, value in flags.items() if value])
flags["c"] = True
print(flags["c"])
