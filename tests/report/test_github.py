from __future__ import annotations

import io
import re

import pytest

from vivavoce.grading.gates import SimpleGate, Threshold
from vivavoce.records.score import failed
from vivavoce.report.github import write_github
from vivavoce.report.graded_run import GradedRun
from vivavoce.store.store import Store

from .cases import TIMEOUT, grade, keep, outcome

COMMAND = re.compile(r"::(notice|warning|error) title=([^:,\r\n]+)::(.+)")
GATE = SimpleGate("exact", Threshold("avg_score", "gte", 0.9))


def commands(graded: GradedRun) -> list[tuple[str, str, str]]:
    """Return the commands; every line must be one."""
    out = io.StringIO()
    write_github(graded, out)
    matches = [COMMAND.fullmatch(line) for line in out.getvalue().splitlines()]
    assert all(matches)
    return [(match[1], match[2], match[3]) for match in matches if match]


async def test_the_verdict_comes_first_then_each_of_the_worst_samples(store: Store) -> None:
    low, broken = outcome("b", {"exact": grade(0.2, "rude")}), outcome("c", {"exact": failed(TIMEOUT)})
    verdict, *others = commands(await keep(store, [outcome("a", {"exact": 0.5}), low, broken], gate=GATE))
    assert verdict[:2] == ("error", "support%3A fail")
    assert [command[:2] for command in others] == [
        ("warning", "support%3A c%3A error"),
        ("error", "support%3A b%3A 0.20"),
        ("error", "support%3A a%3A 0.50"),
    ]
    assert "rude" in others[1][2]


@pytest.mark.parametrize(
    "text",
    [
        *("x\n::error::forged", "x\r::stop-commands::y", "100%0A::error::x", "a,file=/etc::", "::", "\x1b[31m"),
        *("::error::forged", "##[error]forged", "\u2028::error::forged", "</details>|`@everyone"),
    ],
)
async def test_what_strangers_wrote_is_no_command(store: Store, text: str) -> None:
    graded = await keep(store, [outcome(text, {"exact": grade(0.0, text)})], gate=GATE)
    rows = commands(graded)
    assert len(rows) == 2
    assert "%0A::" not in "".join(part.replace("%250A", "") for row in rows for part in row)
    assert "\x1b" not in "".join(part for row in rows for part in row)
