"""Publishing a run: its results in the tools where people look at traces and experiments."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import cast

from vivavoce.errors import UsageError, did_you_mean
from vivavoce.pacing.loops import wait_for
from vivavoce.plugins import lazy
from vivavoce.report.graded_run import GradedRun
from vivavoce.report.publish.request import Kind, Request, counted, write_requests
from vivavoce.report.publish.sending import Address, in_words, send
from vivavoce.run.result import RunResult
from vivavoce.store.store import Store

SERVERS: Mapping[str, str] = {"langfuse": "Langfuse", "phoenix": "Phoenix", "otel": "OpenTelemetry"}
"""Tools that take JSON over HTTP, by name."""
TRACKERS: Mapping[str, str] = {"mlflow": "MLflow", "wandb": "Weights & Biases"}
"""Tools whose own package writes, by name."""
TOOLS: Mapping[str, str] = {**SERVERS, **TRACKERS}


def publish(result: RunResult | GradedRun, to: str) -> list[str]:
    """Send a run with its scores to a tool of `TOOLS`, and return what was done, in words.

    The same scores may be sent again; nothing becomes double.

    Raises:
        UsageError: there is no such tool, it cannot be reached, or it refuses something.
        MissingExtra: its package is not installed.
    """
    if to not in TOOLS:
        raise UsageError(f"no tool '{to}'{did_you_mean(to, TOOLS)}; known: {', '.join(TOOLS)}")
    if isinstance(result, GradedRun):
        return _publish(result, to)
    with closing(Store.open(result.place, create=False)) as store:
        return _publish(GradedRun(store, result.run, result.grading), to)


def _publish(graded: GradedRun, to: str) -> list[str]:
    if to in TRACKERS:
        return cast("Callable[[GradedRun], list[str]]", _part(to, "publish"))(graded)
    left_out: Counter[str] = Counter()
    address = cast("Callable[[], Address]", _part(to, "address"))()
    sent = wait_for(send(_requests(graded, to, left_out), address))
    return [f"{', '.join(in_words(sent)) or 'nothing'} to {address.tool} at {address.url}", *_left_out(left_out)]


def write(graded: GradedRun, to: str, directory: Path) -> list[str]:
    """Write what a tool of `SERVERS` is sent into a folder, and return what was done, in words.

    Raises:
        UsageError: the folder cannot be written.
    """
    left_out: Counter[str] = Counter()
    kinds = cast("Callable[[], Sequence[Kind]]", _part(to, "kinds"))()
    written = write_requests(_requests(graded, to, left_out), kinds, directory)
    return [counted(written), *_left_out(left_out)]


def _requests(graded: GradedRun, to: str, left_out: Counter[str]) -> Iterator[Request]:
    return cast("Callable[[GradedRun, Counter[str]], Iterator[Request]]", _part(to, "requests"))(graded, left_out)


def _part(to: str, name: str) -> object:
    return lazy(f"vivavoce.report.publish.{to}:{name}")


def _left_out(items: Mapping[str, int]) -> list[str]:
    return [f"left out: {number:,} × {item}" for item, number in items.items()]
