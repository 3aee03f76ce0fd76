"""Requests of a run are marked, and spans that come of them are recognised; nobody else's are."""

from __future__ import annotations

import re
import sys

import pytest

from asking import asked
from vivavoce.targets import FrameworkTarget, FunctionTarget
from vivavoce.wire.own_traffic import PREFIX, add_marks, is_own, marked_environment, marked_spans, of_run


def test_requests_are_marked_in_a_run_only_and_headers_of_the_user_stay() -> None:
    assert add_marks({"a": "b"}) == {"a": "b"}
    with of_run("nightly-1"):
        first, second = add_marks({"a": "b"}), add_marks()
        own = add_marks({"Traceparent": "mine", "Baggage": "user=1"})
    assert own == {"Traceparent": "mine", "Baggage": "user=1"}
    assert first["a"] == "b"
    assert first["baggage"] == "vivavoce.run=nightly-1"
    assert re.fullmatch(r"00-76697661[0-9a-f]{24}-[0-9a-f]{16}-01", first["traceparent"])
    assert first["traceparent"] != second["traceparent"]
    assert add_marks() == {}


def test_spans_of_a_run_are_told_by_their_trace_their_attributes_or_their_resource() -> None:
    assert is_own(PREFIX + "0" * 24)
    assert is_own("0" * 32, {"vivavoce.run": "r"})
    assert is_own("0" * 32, {}, {"vivavoce.run": "r"})
    assert is_own("0" * 32, {"baggage.vivavoce.run": "r"})
    assert not is_own("0" * 24 + PREFIX, {"run": "r", "vivavoce.run": ""}, {})


def test_a_process_is_marked_by_its_environment() -> None:
    assert marked_environment() == {}
    with of_run("nightly-1"):
        environment = marked_environment()
    assert environment["BAGGAGE"] == "vivavoce.run=nightly-1"
    assert environment["TRACEPARENT"].startswith(f"00-{PREFIX}")


class Traced:
    """A runnable, and a function, that make a span."""

    name = "bot"

    def __init__(self) -> None:
        self.seen: list[tuple[str, object, bool]] = []

    def answer(self, message: str) -> str:
        trace, baggage = pytest.importorskip("opentelemetry.trace"), pytest.importorskip("opentelemetry.baggage")
        tracer = pytest.importorskip("opentelemetry.sdk.trace").TracerProvider().get_tracer("agent")
        with tracer.start_as_current_span("turn") as span:
            context = span.get_span_context()
        valid = trace.get_current_span().get_span_context().is_valid
        self.seen.append((f"{context.trace_id:032x}", baggage.get_baggage("vivavoce.run"), valid))
        return message

    def invoke(self, given: list[dict[str, str]], config: object = None) -> dict[str, str]:
        return {"answer": self.answer(given[-1]["content"])}


async def test_spans_of_a_target_in_our_own_process_are_marked_where_opentelemetry_is_loaded() -> None:
    trace, traced = pytest.importorskip("opentelemetry.trace"), Traced()
    for target in (FrameworkTarget(traced), FunctionTarget(traced.answer)):
        with of_run("nightly-1"):
            await asked(target, "a", "b")
        await asked(target, "c")
    ids = [seen[0] for seen in traced.seen]
    assert [seen[1:] for seen in traced.seen] == [("nightly-1", True)] * 2 + [(None, False)] + [
        *([("nightly-1", True)] * 2 + [(None, False)])
    ]
    assert [is_own(identifier) for identifier in ids] == [True, True, False] * 2
    assert len(set(ids)) == 6
    assert not trace.get_current_span().get_span_context().is_valid


def test_nothing_is_loaded_to_mark_spans(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "opentelemetry.trace", raising=False)
    with of_run("nightly-1"), marked_spans():
        assert "opentelemetry.trace" not in sys.modules
