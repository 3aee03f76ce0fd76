"""The tool that reaches the target: what it sends, and what the tester is told."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest

from stage import Bot
from vivavoce.errors import UsageError
from vivavoce.messages import FilePart, ImagePart, TextPart
from vivavoce.penelope.tools.target_interaction import REPLY_LIMIT, TargetInteractionTool, result_text, tool_result_of
from vivavoce.penelope.tools.tool import ToolResult

from ..states import DOWN, turn

PNG = base64.b64encode(b"\x89PNG").decode()


def test_it_holds_one_conversation_with_a_target() -> None:
    bot = Bot()
    tool = TargetInteractionTool(bot)
    assert tool.execute("Hi") == ToolResult(success=True, output={"response": "You said: Hi"})
    assert tool.execute(message="Bye").success
    assert [session.sent for session in bot.sessions] == [[["Hi"], ["Hi", "You said: Hi", "Bye"]]]


def test_a_function_is_a_target_too() -> None:
    assert TargetInteractionTool(str.upper).execute("Hi").output == {"response": "HI"}


def test_a_target_that_fails_is_a_result() -> None:
    def dead(message: str) -> str:
        raise ConnectionError("no route")

    result = TargetInteractionTool(dead).execute("Hi")
    assert (result.success, result.output, result.error) == (False, None, "dead raised ConnectionError: no route")


def test_files_are_offered_by_name_and_sent_as_parts() -> None:
    Path("a.png").write_bytes(b"\x89PNG")
    Path("b.pdf").write_bytes(b"%PDF")
    tool = TargetInteractionTool(Bot(), {name: Path(name) for name in ("b.pdf", "a.png")})
    assert tool.parameters["properties"]["files"]["items"]["enum"] == ["a.png", "b.pdf"]
    content = tool.message("Look", ["a.png", "b.pdf"]).content
    assert isinstance(content, list)
    words, picture, paper = content
    assert words == TextPart(text="Look")
    assert isinstance(picture, ImagePart)
    assert picture.image_url.url == f"data:image/png;base64,{PNG}"
    assert isinstance(paper, FilePart)
    assert (paper.file.filename, (paper.file.file_data or "")[:28]) == ("b.pdf", "data:application/pdf;base64,")


def test_without_files_none_can_be_named() -> None:
    assert list(TargetInteractionTool(Bot()).parameters["properties"]) == ["message"]


def test_a_file_that_has_gone_is_named() -> None:
    tool = TargetInteractionTool(Bot(), {"a.png": Path("a.png")})
    with pytest.raises(UsageError, match=r"the file a\.png cannot be read"):
        tool.message("Look", ["a.png"])


def test_the_tester_reads_the_beginning_of_an_endless_reply() -> None:
    response = tool_result_of(turn("Hi", "x" * 1_000_000).exchange).output["response"]
    assert response.startswith("x" * REPLY_LIMIT + "… (980000 more")


def test_the_tester_is_told_of_a_failure_and_nothing_else() -> None:
    result = tool_result_of(turn("Hi", None).exchange)
    assert json.loads(result_text(result)) == {"success": False, "error": DOWN.message}


def test_what_json_does_not_know_is_spelled_as_text() -> None:
    assert json.loads(result_text(ToolResult(success=True, output={"at": Path("x")}))) == {
        "success": True,
        "output": {"at": "x"},
    }
