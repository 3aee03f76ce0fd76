"""A bot that is a tool of an MCP server: it remembers the cities that it was asked about."""

from mcp.server.mcpserver import MCPServer

server = MCPServer("weather")
cities: list[str] = []


@server.tool()
def talk(text: str) -> str:
    """Answer a question about the weather."""
    city = next((city for city in ("Rome", "Oslo") if city in text), None)
    if city is None:
        return f"The first was {cities[0]}."
    cities.append(city)
    return f"It is sunny in {city}."


if __name__ == "__main__":
    server.run()
