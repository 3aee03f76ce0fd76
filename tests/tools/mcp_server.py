"""A real MCP server, started by the tests as a process of its own."""

from __future__ import annotations

import os
import sys

from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError

server = MCPServer("orders")
seen: list[str] = []


@server.tool()
def baggage(context: Context) -> str:
    """Tell what a call says besides its arguments."""
    return str((context.request_context.meta or {}).get("baggage"))


@server.tool()
def look_up(order: str) -> str:
    """Find an order."""
    seen.append(order)
    if order == "gone":
        raise ToolError("no such order")
    if order == "die":
        print("the disk is full", file=sys.stderr, flush=True)
        os._exit(3)
    return f"{order} is sent ({len(seen)}, {os.environ.get('DEPOT', 'nowhere')})"


if __name__ == "__main__":
    if "broken" in sys.argv:
        print("no configuration", file=sys.stderr)
        sys.exit(1)
    if "http" in sys.argv:
        server.run("streamable-http", port=int(sys.argv[-1]))
    server.run()
