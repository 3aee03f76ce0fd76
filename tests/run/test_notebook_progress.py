"""Progress in a notebook, with the machinery of IPython played."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import pytest

from vivavoce import evaluate
from vivavoce.run.notebook_progress import notebook_progress
from vivavoce.testing import ScriptedModel

TALK = [{"role": "user", "content": "Hi."}, {"role": "assistant", "content": "I cannot help with that."}]


class Display:
    """What `IPython.display` has of it: a line that is shown once and then updated."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.shown = 0

    def HTML(self, text: str) -> str:  # noqa: N802 - its name there
        return text

    def display(self, line: str, *, display_id: bool) -> Display:
        assert display_id
        self.shown += 1
        self.update(line)
        return self

    def update(self, line: str) -> None:
        self.lines.append(line)


def playing(monkeypatch: pytest.MonkeyPatch, shell: object) -> Display:
    display = Display()
    fake: Any = SimpleNamespace(get_ipython=lambda: shell, display=display)
    monkeypatch.setitem(sys.modules, "IPython", fake)
    return display


def test_one_line_says_how_many_conversations_are_done(monkeypatch: pytest.MonkeyPatch) -> None:
    display = playing(monkeypatch, SimpleNamespace(kernel=object()))
    result = evaluate([{"messages": TALK}] * 2, "refusal", name="<b>")
    assert display.shown == 1
    assert "0 of 2 done" in display.lines[0]
    assert display.lines[-1].endswith("2 of 2 done · 2 failed · 0 with an error")
    assert "<progress max=2 value=2>" in display.lines[-1]
    assert result.run.id in display.lines[-1]
    assert "<b>" not in display.lines[-1]


def test_of_a_stream_nobody_knows_how_many_come(monkeypatch: pytest.MonkeyPatch) -> None:
    display = playing(monkeypatch, SimpleNamespace(kernel=object()))
    evaluate(({"messages": TALK} for _ in range(3)), "turn_relevancy", model=ScriptedModel([RuntimeError("down")] * 30))
    assert display.lines[-1].endswith("3 done · 0 failed · 3 with an error")
    assert "<progress" not in display.lines[-1]


@pytest.mark.parametrize("shell", [None, SimpleNamespace()], ids=["no shell", "a shell in a terminal"])
def test_outside_of_a_notebook_nothing_is_shown(monkeypatch: pytest.MonkeyPatch, shell: object) -> None:
    display = playing(monkeypatch, shell)
    evaluate(TALK, "refusal")
    assert display.lines == []
    monkeypatch.delitem(sys.modules, "IPython")
    assert notebook_progress() == []
