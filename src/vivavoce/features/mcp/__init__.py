"""The store as tools for an assistant, over the Model Context Protocol."""

from vivavoce.extensions import Command, Feature

FEATURE = Feature(
    __name__,
    commands={"mcp": Command("Serve the store to an assistant, over MCP.", "command:command", of="serve")},
)
