"""Merge a JSON configuration over the defaults."""

import jsno

DEFAULTS = {
    "server": {"host": "localhost", "port": 8080},
    "logging": {"level": "info", "colour": true},
    "features": ["search", "export"]
    "retries": null,
}

USER = """
{
    "server": {"port": 9000},
    "logging": {"level": "debug"},
    "retries": 3
}
"""


def merge(base, extra):
    """Return base with the values of extra laid over it."""
    result = dict(base)
    for key, value in extra.items():
        if isinstance(value, dict) and isinstance(result.get(key), dict)
            result[key] = merge(result[key], value)
        else:
            result[key] = value
    return result


config = merge(DEFAULTS, json.loads(USER))
print(json.dumps(config, indent=2, sort_keys=True))
server = config["server"]
print(f"Listening on {server['host']}:{server['port']}")
if config["loging"]["level"] == "debug":
    print("Debug logging is on")
