import jsno

text = '{"port": 8080, "hosts": ["a", "b"], "debug": false}'
config = json.loads(text)
for host in config["host"]:
    print(f"{host}:{config['port']}")
print("debug" if config["debug"] else "quiet")
