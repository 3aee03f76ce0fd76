"""What a tester leaves, in the terminal."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

from rich.console import Console, RenderableType

from vivavoce.report.tester import ending, thoughts

HOSTILE = "\x1b[31m[bold]red\u202e"


def step(tool: str | None, content: str, refused: bool = False) -> dict[str, Any]:
    calls = [{"function": {"name": tool, "arguments": "{}"}}] if tool else None
    return {"assistant_message": {"tool_calls": calls}, "tool_message": {"content": content}, "refused": refused}


def shown(parts: Iterator[RenderableType]) -> list[str]:
    out = io.StringIO()
    console = Console(file=out, width=120)
    for part in parts:
        console.print(part)
    return out.getvalue().splitlines()


def test_a_turn_has_its_steps_and_its_reason() -> None:
    steps = [
        step("analyze_response", '{"success": true, "output": {"findings": []}}'),
        step("send", '{"success": false, "error": "does not exist"}', refused=True),
        step(None, "words and no JSON", refused=True),
        step("odd", "[1]"),
    ]
    assert shown(thoughts({"history": [{"steps": steps, "reasoning": "to\nbegin"}]}, 0)) == [
        "     step  analyze_response: {'findings': []}",
        "     step  send (refused): does not exist",
        "     step  words (refused): words and no JSON",
        "     step  odd: [1]",
        "   tester  to begin",
    ]


def test_where_nobody_thought_nothing_is_shown() -> None:
    assert shown(thoughts(None, 0)) == shown(ending(None)) == []
    assert shown(thoughts({"history": [{}]}, 0)) == shown(thoughts({"history": []}, 3)) == []


def test_the_ending_says_how_and_why_and_whose_fault() -> None:
    test = {
        "status": "max_turns",
        "target_passed": False,
        "stop_reason": "the limit of 2 turns is reached",
        "blame": "target",
        "blame_reason": "must: greet",
        "criteria": [{"text": "greet", "must": True, "met": False}, {"text": "swear", "must": False, "met": True}],
        "discarded": [{"blame_reason": "It gave itself away."}],
        "unfinished": [step("send", '{"success": false, "error": "no"}', refused=True)],
    }
    assert shown(ending(test)) == [
        "     step  send (refused): no",
        "     test  max_turns · target failed",
        "  stopped  the limit of 2 turns is reached",
        "    blame  target: must: greet",
        "     rule  must: greet: not kept",
        "     rule  must not: swear: kept",
        "    again  1 earlier attempt discarded: It gave itself away.",
    ]


def test_a_test_that_is_undecided_says_so() -> None:
    assert shown(ending({"status": "inconclusive", "stop_reason": "x"}))[0] == "     test  inconclusive · undecided"
    assert shown(ending({"status": "success", "target_passed": True}))[0] == "     test  success · target passed"


def test_what_was_said_is_neither_markup_nor_a_command_to_the_terminal() -> None:
    lines = shown(thoughts({"history": [{"steps": [step(HOSTILE, HOSTILE)], "reasoning": HOSTILE}]}, 0))
    lines += shown(ending({"status": "error", "stop_reason": HOSTILE, "blame": "target", "blame_reason": HOSTILE}))
    assert sum("[bold]red" in line for line in lines) == 4
    assert not set("\x1b\u202e") & set("".join(lines))
