"""What a run was made of and what it took, for the head of its page: judges, commit, trials, tokens, cost, latency."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, cast

from vivavoce.records.details import in_words
from vivavoce.records.run import Grading, Run
from vivavoce.records.score import total
from vivavoce.run.summary import Summary
from vivavoce.safe_text import safe

SHORT = 10
"""Characters of a commit."""


class Fact(NamedTuple):
    """A word for what it is, and what it is in this run."""

    name: str
    text: str


def facts(run: Run, grading: Grading, summary: Summary) -> list[Fact]:
    """Return what is known; nothing is there for what a run does not record."""
    return [Fact(name, safe(text)) for name, text in _facts(run, grading, summary)]


def judges_of(grading: Grading) -> list[str]:
    """Return the models that the suite names as judges, each once."""
    spec = grading.spec
    graders: Any = spec.get("graders")
    listed = list(cast("dict[str, Any]", graders).values()) if isinstance(graders, dict) else []
    found = [cast("dict[str, Any]", one).get("model") for one in listed if isinstance(one, dict)]
    return list(dict.fromkeys(one for one in (*found, spec.get("judge")) if isinstance(one, str) and one))


def _facts(run: Run, grading: Grading, summary: Summary) -> Iterator[tuple[str, str]]:
    if judges := judges_of(grading):
        yield "judge" if len(judges) == 1 else "judges", ", ".join(judges)
    if trials := max((max(one.pass_hat) for one in summary.graders if one.pass_hat), default=0):
        yield "trials", str(trials)
    if (commit := revision(run)) is not None:
        yield "commit", commit[:SHORT]
    used = total(summary.usage.values())
    if used is not None and any(vars(used).values()):
        yield "used", in_words(used)
    for one in summary.latency:
        name = f"a reply of {one.target}" if len(summary.latency) > 1 else "a reply"
        yield name, f"{one.p50:.2f} s median, {one.p95:.2f} s 95th percentile"


def revision(run: Run) -> str | None:
    """Return the commit that was checked out when the run started, None where it is not known."""
    found = run.options.get("revision")
    return found if isinstance(found, str) else None
