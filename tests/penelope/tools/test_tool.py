from __future__ import annotations

import pytest

from vivavoce.errors import UsageError
from vivavoce.penelope.tools.tool import (
    OUTPUT_LIMIT,
    FunctionTool,
    Tool,
    ToolResult,
    as_tool,
    cut_findings,
    cut_result,
    tool,
)

from ..states import state


@tool
def count_words(text: str, least: int = 1) -> int:
    """Count the words of a text."""
    return max(least, len(text.split()))


@tool(name="look_up")
async def lookup(key: str) -> dict[str, str]:
    """Look something up."""
    return {"key": key}


def test_a_function_becomes_a_tool_with_the_schema_of_its_parameters() -> None:
    assert (count_words.name, count_words.description) == ("count_words", "Count the words of a text.")
    assert count_words.parameters["properties"]["text"]["type"] == "string"
    assert count_words.parameters["required"] == ["text"]
    assert count_words.parameters["additionalProperties"] is False


async def test_a_function_is_called_sync_or_async_and_its_value_is_the_output() -> None:
    assert count_words.execute(text="a b") == ToolResult(success=True, output=2)
    assert (await count_words.aexecute(text="a b", least=5)).output == 5
    assert lookup.name == "look_up"
    assert (await lookup.aexecute(key="k")).output == {"key": "k"}


def test_a_result_of_its_own_is_passed_on() -> None:
    def fail() -> ToolResult:
        """Fail."""
        return ToolResult(success=False, error="closed")

    assert as_tool(fail).execute() == ToolResult(success=False, error="closed")


def test_a_function_without_a_docstring_or_without_named_arguments_is_refused() -> None:
    def bare() -> None: ...

    def loose(*texts: str) -> None:
        """Take anything."""

    with pytest.raises(UsageError, match="bare needs a docstring"):
        tool(bare)
    with pytest.raises(UsageError, match="give each argument a name"):
        tool(loose)


def test_as_tool_passes_tools_and_refuses_classes_and_values() -> None:
    assert as_tool(count_words) is count_words
    for thing in (FunctionTool, 5):
        with pytest.raises(UsageError, match="a tool is a Tool or a function"):
            as_tool(thing)  # pyright: ignore[reportArgumentType]


def test_findings_are_those_of_the_output_or_the_output_itself() -> None:
    assert count_words.findings(ToolResult(success=True, output={"findings": ["one", 2]})) == ["one", "2"]
    assert count_words.findings(ToolResult(success=True, output={"a": 1})) == ['count_words: {"a": 1}']
    assert count_words.findings(ToolResult(success=True, output="x" * 1000))[0].endswith("(700 more characters)")
    assert count_words.findings(ToolResult(success=False, output="x")) == []
    assert count_words.findings(ToolResult(success=True)) == []


def test_the_documentation_says_what_when_when_not_and_by_example() -> None:
    class Weigh(Tool):
        name = "weigh"
        description = "Weigh a thing."
        parameters = {"type": "object"}  # noqa: RUF012
        when_to_use = "for things."
        when_not_to_use = "for people."
        examples = "{}"

        def execute(self, **arguments: object) -> ToolResult:
            return ToolResult(success=True, output=arguments)

    weigh = Weigh()
    assert weigh.documentation == "Weigh a thing.\nUse it for things.\nDo not use it for people.\nExamples: {}"
    assert weigh.begin(state()) is weigh


def test_what_is_too_long_is_cut_and_says_so() -> None:
    result = ToolResult(success=True, output={"rows": ["é" * (OUTPUT_LIMIT - 20)]})
    assert cut_result(result) == result
    end = "… cut after 20,000 characters"
    for output in ("x" * 5_000_000, ["x"] * 1_000_000):
        text = cut_result(ToolResult(success=True, output=output)).output
        assert (len(text), text.endswith(end)) == (OUTPUT_LIMIT + len(end), True)
    assert cut_findings(["a", 2]) == ["a", "2"]
    assert cut_findings(["x" * 9_000] * 1_000) == ["x" * 9_000, "x" * 9_000, end]
    error = cut_result(ToolResult(success=False, error="x" * 5_000_000)).error or ""
    assert error == "x" * OUTPUT_LIMIT + end


class PriceHTTPCheckTool(Tool):
    """Compare a price with the list."""

    def execute(self, price: float, currency: str = "EUR") -> dict[str, float]:  # type: ignore[override]  # pyright: ignore[reportIncompatibleMethodOverride]
        return {currency: price}


class Undescribed(Tool):
    def execute(self, text: str) -> ToolResult:  # type: ignore[override]  # pyright: ignore[reportIncompatibleMethodOverride]
        return ToolResult(success=True, output=text)


class Unnamed(Tool):
    """Take anything."""

    def execute(self, **arguments: object) -> ToolResult:
        return ToolResult(success=True, output=arguments)


async def test_a_tool_that_says_nothing_of_itself_is_described_by_its_class() -> None:
    tool = as_tool(PriceHTTPCheckTool())
    assert (tool.name, tool.documentation) == ("price_http_check", "Compare a price with the list.")
    assert tool.parameters["required"] == ["price"]
    assert list(tool.parameters["properties"]) == ["price", "currency"]
    assert await tool.aexecute(price=2.5) == ToolResult(success=True, output={"EUR": 2.5})


def test_a_tool_that_nothing_describes_is_refused() -> None:
    with pytest.raises(UsageError, match="the tool undescribed needs a docstring or a description"):
        as_tool(Undescribed())
    with pytest.raises(UsageError, match=r"the tool unnamed takes '\*\*arguments: object'; give each"):
        as_tool(Unnamed())
