"""Calls that have nothing to do with each other are not compared with each other, however many a trace has."""

from __future__ import annotations

import pytest

from vivavoce.conversations.format import Loss
from vivavoce.features.formats.steps import Step
from vivavoce.features.formats.traced import Line, assemble

CALLS = 500


@pytest.mark.parametrize("about", [{}, {"agent": "shop", "system": "You help."}])
def test_unrelated_calls_of_one_trace_are_not_compared(about: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    compared = 0
    known = Line.count_known

    def count_known(line: Line, call: Line) -> int | None:
        nonlocal compared
        compared += 1
        return known(line, call)

    monkeypatch.setattr(Line, "count_known", count_known)
    steps = [
        Step(
            trace="t",
            id=str(number),
            kind="model",
            start=1.0,
            end=9.0,
            inputs=[{"role": "user", "content": f"question {number}"}],
            outputs=[{"role": "assistant", "content": f"answer {number}"}],
            **about,  # pyright: ignore[reportArgumentType]
        )
        for number in range(CALLS)
    ]
    assembled_steps = assemble(steps, Loss())
    assert len(assembled_steps.beside) == CALLS - 1
    assert compared < CALLS
