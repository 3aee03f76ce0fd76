"""What a tester leaves of a conversation that it led, in the terminal: its thoughts, and how the test ended."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, cast

from rich.text import Text

from vivavoce.report.tables import Labelled
from vivavoce.report.text import count, one_line

Test = Mapping[str, Any]
"""A test as its trajectory holds it, see `penelope.result.dump_test`."""


def thoughts(test: Test | None, index: int) -> Iterator[Labelled]:
    """Yield why the tester said what it said in a turn, counted from 0, and the steps that it took before."""
    turns = _listed(test, "history")
    if index >= len(turns):
        return
    for step in _listed(turns[index], "steps"):
        yield _step(step)
    if why := turns[index].get("reasoning"):
        yield Labelled(Text("   tester  ", style="dim"), Text(one_line(str(why), 300), style="dim italic"))


def ending(test: Test | None) -> Iterator[Labelled]:
    """Yield how a test ended: its status, why it stopped, whose fault it is, what had to happen and did not."""
    if test is None:
        return
    for step in _listed(test, "unfinished"):
        yield _step(step)
    passed = {True: "target passed", False: "target failed"}.get(cast("bool", test.get("target_passed")), "undecided")
    style = "green" if test.get("target_passed") else "red" if test.get("target_passed") is False else "yellow"
    yield Labelled(Text("     test  ", style="bold"), Text(f"{test['status']} · {passed}", style=style))
    yield Labelled(Text("  stopped  ", style="dim"), Text(one_line(str(test.get("stop_reason", "")), 400)))
    if blame := test.get("blame"):
        said = f"{blame}: {test.get('blame_reason', '')}"
        yield Labelled(Text("    blame  ", style="dim"), Text(one_line(said, 400)))
    for one in _listed(test, "criteria"):
        kept = "kept" if one.get("met") else "not kept"
        said = f"{'must' if one.get('must') else 'must not'}: {one.get('text')}: {kept}"
        yield Labelled(Text("     rule  ", style="dim"), Text(one_line(said, 300)))
    if earlier := _listed(test, "discarded"):
        said = f"{count(len(earlier), 'earlier attempt')} discarded: {earlier[0].get('blame_reason', '')}"
        yield Labelled(Text("    again  ", style="dim"), Text(one_line(said, 300)))


def _step(step: Test) -> Labelled:
    calls: list[Any] = step["assistant_message"].get("tool_calls") or []
    name = calls[0]["function"]["name"] if calls else "words"
    refused = " (refused)" if step.get("refused") else ""
    said = f"{name}{refused}: {_result(step['tool_message'].get('content') or '')}"
    return Labelled(Text("     step  ", style="dim"), Text(one_line(said, 300), style="dim"))


def _result(content: str) -> str:
    try:
        told = json.loads(content)
    except ValueError:
        return content
    if not isinstance(told, dict):
        return content
    fields = cast("dict[str, Any]", told)
    return str(fields.get("error") or fields.get("output"))


def _listed(thing: Test | None, name: str) -> list[dict[str, Any]]:
    return cast("list[dict[str, Any]]", (thing or {}).get(name) or [])
