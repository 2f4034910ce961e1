"""An MCP server for tests, on the official SDK: over stdio, or over HTTP with a port as its argument.

A ledger, a file that survives the process, has what the tools did.
"""

import argparse
import base64
import json
import os
import socket

import anyio
import mcp_types as types
import uvicorn
from mcp.server import NotificationOptions, Server
from mcp.server.stdio import stdio_server
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ToolsListChanged
from mcp.shared.exceptions import MCPError

PAGE = 3

options = argparse.ArgumentParser()
options.add_argument("ledger")
options.add_argument("--port", type=int)
options.add_argument("--token")
options.add_argument("--empty", action="store_true")
options = options.parse_args()

bus = InMemorySubscriptionBus()
extra = []
started = anyio.Event()
cancelled = anyio.Event()


def tool(name, schema=None, **more):
    schema = schema or {"type": "object"}
    return types.Tool(name=name, description=f"Runs {name}.", input_schema=schema, **more)


def hints(**more):
    return types.ToolAnnotations(**more)


TOOLS = [
    tool("echo", {"type": "object", "properties": {"text": {"$ref": "#/$defs/Text"}},
                  "required": ["text"], "$defs": {"Text": {"type": "string"}}},
         annotations=hints(read_only_hint=True)),
    tool("note"),
    tool("crash"),
    tool("crash_reading", annotations=hints(read_only_hint=True)),
    tool("wait"),
    tool("wait_reading", annotations=hints(read_only_hint=True)),
    tool("was_cancelled"),
    tool("work"),
    tool("grow", annotations=hints(destructive_hint=True)),
    tool("kinds"),
    tool("fail"),
    tool("reject"),
    tool("about"),
    tool("trace"),
    tool("big"),
    tool("files/read all"),
    tool("n" * 100),
    tool("bad", {"type": "object", "properties": {"ż": {}}, "required": ["ż"]}),
]


def note(text):
    with open(options.ledger, "a") as ledger:
        ledger.write(text + "\n")
        ledger.flush()
        os.fsync(ledger.fileno())


def text(value):
    return types.CallToolResult(content=[types.TextContent(type="text", text=value)])


async def list_tools(ctx, params):
    tools = [] if options.empty else TOOLS + extra
    at = int(params.cursor) if params and params.cursor else 0
    after = at + PAGE
    more = str(after) if after < len(tools) else None
    return types.ListToolsResult(tools=tools[at:after], next_cursor=more)


async def call_tool(ctx, params):
    arguments = params.arguments or {}
    name = params.name
    if name == "echo":
        return text(arguments["text"])
    if name == "note":
        note(arguments["text"])
        return text("noted")
    if name.startswith("crash"):
        note(name)
        os._exit(3)
    if name.startswith("wait"):
        note(name)
        started.set()
        # The caller sees by this that the call has begun.
        await ctx.session.report_progress(1, 2, "begun")
        try:
            await anyio.sleep_forever()
        finally:
            cancelled.set()
    if name == "was_cancelled":
        await cancelled.wait()
        return text("yes")
    if name == "work":
        for step in range(1, 4):
            await ctx.session.report_progress(step, 3, f"step {step}")
        return text("done")
    if name == "grow":
        extra.append(tool(f"extra{len(extra) + 1}"))
        if ctx.protocol_version < "2026":
            await ctx.session.send_tool_list_changed()
        else:
            await bus.publish(ToolsListChanged())
        return text("grown")
    if name == "kinds":
        return types.CallToolResult(
            content=[
                types.TextContent(type="text", text="a text"),
                types.ImageContent(type="image", data=base64.b64encode(b"png").decode(), mime_type="image/png"),
                types.ResourceLink(type="resource_link", uri="file:///a", name="a"),
            ],
            structured_content={"n": 1},
        )
    if name == "fail":
        return types.CallToolResult(content=[types.TextContent(type="text", text="no paper")], is_error=True)
    if name == "reject":
        raise MCPError(-32602, "the arguments are wrong")
    if name == "about":
        return text(json.dumps({
            "env": dict(os.environ), "cwd": os.getcwd(), "pid": os.getpid(),
        }))
    if name == "trace":
        return text(f"{ctx.protocol_version} {ctx.meta['traceparent']}")
    if name == "big":
        return text("x" * arguments["bytes"])
    if name in ("files/read all", "n" * 100) or name.startswith("extra"):
        return text(f"called {name}")
    raise MCPError(-32602, f"unknown tool: {name}")


server = Server(
    "test", version="1", on_list_tools=list_tools, on_call_tool=call_tool,
    on_subscriptions_listen=ListenHandler(bus),
)
# So that versions before 2026 announce changes of the list.
initialization = server.create_initialization_options
server.create_initialization_options = lambda *_, **__: initialization(NotificationOptions(tools_changed=True))


def checked(app):
    async def check(scope, receive, send):
        token = dict(scope.get("headers") or []).get(b"authorization", b"").decode()
        if scope["type"] == "http" and options.token and token != options.token:
            await send({"type": "http.response.start", "status": 401,
                        "headers": [(b"www-authenticate", b"Bearer")]})
            await send({"type": "http.response.body", "body": token.encode()})
            return
        await app(scope, receive, send)
    return check


async def over_http():
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", options.port))
    listener.listen()
    print(listener.getsockname()[1], flush=True)
    config = uvicorn.Config(checked(server.streamable_http_app()), log_level="error")
    await uvicorn.Server(config).serve(sockets=[listener])


async def over_stdio():
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


anyio.run(over_stdio if options.port is None else over_http)
