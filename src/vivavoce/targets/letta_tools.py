"""Tools for Letta agents that a user's set-up writes as a class, as the client took them before 1.5."""

from __future__ import annotations

import ast
import inspect
from textwrap import dedent
from typing import Any

from pydantic import BaseModel


class BaseTool(BaseModel):
    """A tool whose `run` the server executes; `args_schema` is the model of its arguments."""

    name: str | None = None
    description: str | None = None
    tags: list[str] | None = None
    args_schema: type[BaseModel] | None = None

    def run(self, *args: Any, **kwargs: Any) -> Any:
        """Do what the tool does."""
        raise NotImplementedError

    def get_source_code(self) -> str:
        """Return the source of `run` as a function of the tool's name, without `self`."""
        (function,) = ast.parse(dedent(inspect.getsource(type(self).run))).body
        assert isinstance(function, ast.FunctionDef)
        function.name = self.name or function.name
        del function.args.args[0]
        return ast.unparse(function)


async def add_tool(tools: Any, *, tool: BaseTool) -> Any:
    """Create a tool on the server, or update it, and return what the server answers; `tools` are those of a client."""
    schema = tool.args_schema.model_json_schema() if tool.args_schema else None
    fields = {"args_json_schema": schema, "description": tool.description, "tags": tool.tags}
    known = {name: value for name, value in fields.items() if value is not None}
    return await tools.upsert(source_code=tool.get_source_code(), **known)
