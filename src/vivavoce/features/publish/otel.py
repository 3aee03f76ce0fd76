"""OpenTelemetry: a run as spans, its scores as events of the conventions for generative AI.

The run is a span of its own. Each conversation is a trace with a span for each turn and for each score, linked to the
run: a trace of thousands of conversations is more than most tools can show. A conversation that was recorded as traces
of OpenTelemetry is not sent again; its scores are events in the trace that it came from.
Source: OTLP over HTTP; semantic-conventions-genai 0.1, where `gen_ai.evaluation.result` is an event, so a log record.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from importlib.metadata import version
from typing import Any
from urllib.parse import unquote

from vivavoce.conversations.format import Loss, format_named
from vivavoce.conversations.shapes import fields_in
from vivavoce.errors import Fault, UsageError
from vivavoce.features.publish.conversation import Conversation, Message, Place, Span, conversations, spans, stable_id
from vivavoce.features.publish.sending import Address, Kind, Request
from vivavoce.records.score import Failure, Score
from vivavoce.report.graded_run import GradedRun
from vivavoce.report.text import strict_json
from vivavoce.wire.http import checked_url
from vivavoce.wire.otlp import SCORE_EVENT, nanoseconds, otlp_attributes
from vivavoce.wire.own_traffic import RUN

FORMATS = frozenset(("otel", "openinference"))
"""Formats of rows that were traces of OpenTelemetry."""
TRACES = Kind("traces.jsonl", "/v1/traces", "span")
LOGS = Kind("logs.jsonl", "/v1/logs", "score")

_BATCH_SIZE = 20
"""Conversations in one request."""
_INTERNAL = 1
_OK, _ERROR = {"code": 1}, 2
Data = dict[str, Any]


def kinds() -> tuple[Kind, ...]:
    """Return everything that is posted, in its order."""
    return (TRACES, LOGS)


def requests(graded: GradedRun, left_out: Counter[str]) -> Iterator[Request]:
    """Yield the spans and then the scores; a score that was skipped is counted in `left_out`."""
    resource = _resource(graded)
    yield _traces([_run_span(graded)], resource)
    for some in _batches(conversations(graded, FORMATS)):
        batch_spans = [span for conversation in some for span in _spans(graded, conversation)]
        if batch_spans:
            yield _traces(batch_spans, resource)
    for some in _batches(conversations(graded, FORMATS)):
        events = [event for conversation in some for event in _events(graded, conversation, left_out)]
        if events:
            body = {"scope": _scope(), "logRecords": events}
            yield Request(LOGS, {"resourceLogs": [{"resource": resource, "scopeLogs": [body]}]}, len(events))


def _traces(data: list[Data], resource: Data) -> Request:
    body = {"scope": _scope(), "spans": data}
    return Request(TRACES, {"resourceSpans": [{"resource": resource, "scopeSpans": [body]}]}, len(data))


def _batches(conversations: Iterator[Conversation]) -> Iterator[list[Conversation]]:
    while some := [conversation for conversation, _ in zip(conversations, range(_BATCH_SIZE), strict=False)]:
        yield some


def _scope() -> Data:
    return {"name": "vivavoce", "version": version("vivavoce")}


def _resource(graded: GradedRun) -> Data:
    return {"attributes": otlp_attributes({"service.name": "vivavoce", RUN: graded.run.id})}


def _run_ids(graded: GradedRun) -> Data:
    return {"traceId": stable_id(graded.grading.id, "run"), "spanId": stable_id(graded.grading.id, "run", length=16)}


def _run_span(graded: GradedRun) -> Data:
    run, summary = graded.run, graded.summary()
    known: Data = {
        RUN: run.id,
        "vivavoce.grading": graded.grading.id,
        "vivavoce.suite": run.suite,
        "vivavoce.verdict": graded.grading.verdict,
        "vivavoce.conversations": summary.attempts,
        "vivavoce.failed_conversations": summary.failed_attempts,
        **{f"vivavoce.mean.{grader.name}": grader.mean for grader in summary.graders if grader.measured is None},
        **{
            f"vivavoce.measured.{grader.name}": grader.measured.mean
            for grader in summary.graders
            if grader.measured is not None
        },
    }
    end = run.finished_at or run.started_at
    return {**_run_ids(graded), **_times(run.started_at, end), **_about(f"run {run.suite}", known)}


def _spans(graded: GradedRun, conversation: Conversation) -> Iterator[Data]:
    """Yield the spans of a conversation, then one for each score; none of a conversation that was sent before."""
    if not conversation.is_new:
        return
    key = conversation.outcome.attempt.key
    known: Data = {
        RUN: conversation.run,
        "vivavoce.sample": key.sample_id,
        "vivavoce.trial": key.trial,
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": key.target,
        "gen_ai.conversation.id": stable_id(conversation.run, *key),
    }
    end = 0.0
    for span in spans(conversation):
        end = max(end, span.end)
        ids = {"traceId": span.trace, "spanId": span.id, "parentSpanId": span.parent or ""}
        content = _turn(span) if span.parent else _whole(conversation)
        links: Data = {} if span.parent else {"links": [{**_run_ids(graded), "attributes": []}]}
        yield {**ids, **_times(span.start, span.end), **_about(span.name, {**known, **content}, span.failure), **links}
    for name, score in _scores(conversation):
        if score.state != "skipped":
            yield _score_span(graded, conversation, name, score, end)


def _whole(conversation: Conversation) -> Data:
    """Return the whole conversation as what an agent was given and what it made at last."""
    messages = [message.to_dict() for message in conversation.outcome.attempt.trajectory.messages]
    first_output = len(messages) - 1 if messages and messages[-1]["role"] == "assistant" else len(messages)
    return {
        "gen_ai.input.messages": _messages(messages[:first_output]),
        "gen_ai.output.messages": _messages(messages[first_output:]),
    }


def _turn(span: Span) -> Data:
    usage = span.usage
    return {
        "gen_ai.input.messages": _messages(span.inputs),
        "gen_ai.output.messages": _messages(span.outputs),
        "gen_ai.usage.input_tokens": None if usage is None else usage.input_tokens,
        "gen_ai.usage.output_tokens": None if usage is None else usage.output_tokens,
    }


def _messages(messages: list[Message]) -> str | None:
    if not messages:
        return None
    loss, write = Loss(), format_named("otel").write_message
    assert write is not None
    return strict_json([write(message, index, loss) for index, message in enumerate(messages)])


def _scores(conversation: Conversation) -> Iterator[tuple[str, Score]]:
    """Yield every score by the name of its grader, that of the whole conversation before those of its turns."""
    reward = {} if conversation.outcome.reward is None else {"reward": conversation.outcome.reward}
    for name, whole in {**conversation.outcome.scores, **reward}.items():
        yield name, whole
        yield from ((name, score) for score in whole.turns or ())


def _score_span(graded: GradedRun, conversation: Conversation, name: str, score: Score, at: float) -> Data:
    """Return the span of the call of a grader; it stands at the end of its conversation, for no record says when."""
    usage = score.usage
    known: Data = {
        **_score(graded, conversation, name, score),
        "gen_ai.usage.input_tokens": None if usage is None else usage.input_tokens,
        "gen_ai.usage.output_tokens": None if usage is None else usage.output_tokens,
    }
    ids = {
        "traceId": conversation.trace,
        "spanId": stable_id(graded.grading.id, conversation.trace, name, score.turn, length=16),
        "parentSpanId": conversation.root if score.turn is None else conversation.span_of(score.turn),
    }
    failed = _why(score.failure, score.reason) if score.state == "error" else None
    return {**ids, **_times(at, at), **_about(f"evaluate {name}", known, failed)}


def _events(graded: GradedRun, conversation: Conversation, left_out: Counter[str]) -> Iterator[Data]:
    end = graded.grading.finished_at or graded.grading.created_at
    for name, score in _scores(conversation):
        if score.state == "skipped":
            left_out["score that was skipped"] += score.turn is None
            continue
        place = _place_of(conversation, score)
        known = _score(graded, conversation, name, score)
        if place.session is not None:
            known["gen_ai.conversation.id"] = place.session
        yield {
            "timeUnixNano": nanoseconds(end),
            "observedTimeUnixNano": nanoseconds(end),
            "eventName": SCORE_EVENT,
            "severityNumber": 17 if score.state == "error" else 9,
            "attributes": otlp_attributes(known),
            **({} if place.trace is None else {"traceId": place.trace}),
            **({} if place.span is None else {"spanId": place.span}),
        }


def _place_of(conversation: Conversation, score: Score) -> Place:
    """Return what a score is about; of a conversation of ours that is the span of the whole, or of its turn."""
    place = conversation.place_of(score.turn)
    return Place(place.trace, conversation.root) if conversation.is_new and score.turn is None else place


def _score(graded: GradedRun, conversation: Conversation, name: str, score: Score) -> Data:
    """Return what the conventions have a name for, and below our own names the rest; an error has no value."""
    value = score.raw if score.value is None else score.value
    label = score.raw if isinstance(score.raw, str) else {True: "pass", False: "fail", None: None}[score.passed]
    return {
        RUN: conversation.run,
        "gen_ai.evaluation.name": name,
        "gen_ai.evaluation.score.value": value if isinstance(value, float) else None,
        "gen_ai.evaluation.score.label": label,
        "gen_ai.evaluation.explanation": score.reason,
        "error.type": None if score.state != "error" else score.failure.kind if score.failure else "error",
        "vivavoce.grading": graded.grading.id,
        "vivavoce.sample": conversation.outcome.attempt.key.sample_id,
        "vivavoce.turn": score.turn,
        "vivavoce.passed": score.passed,
        "vivavoce.fingerprint": graded.grading.fingerprints.get(name),
    }


def _why(failure: Failure | None, reason: str | None) -> str:
    return failure.message if failure is not None else reason or "error"


def _about(name: str, known: Data, failed: str | None = None) -> Data:
    status = _OK if failed is None else {"code": _ERROR, "message": failed}
    return {"name": name, "kind": _INTERNAL, "attributes": otlp_attributes(known), "status": status}


def _times(start: float, end: float) -> Data:
    return {"startTimeUnixNano": nanoseconds(start), "endTimeUnixNano": nanoseconds(end)}


def address() -> Address:
    """Return where the receiver is and what goes with each request, as exporters read it from the environment.

    Raises:
        UsageError: the address or the headers are invalid.
    """
    name = "OTEL_EXPORTER_OTLP_ENDPOINT"
    place = checked_url(os.environ.get(name) or "http://localhost:4318", name).rstrip("/")
    headers = dict(_headers(os.environ.get("OTEL_EXPORTER_OTLP_HEADERS") or ""))
    return Address("OpenTelemetry", place, headers, tuple(headers.values()), has, list_refusals)


def _headers(text: str) -> Iterator[tuple[str, str]]:
    for pair in filter(str.strip, text.split(",")):
        name, sign, value = pair.partition("=")
        if not sign or not name.strip():
            raise UsageError("OTEL_EXPORTER_OTLP_HEADERS: write it as name=value,name=value, with %20 for a space")
        yield unquote(name.strip()), unquote(value.strip())


def has(request: Request, fault: Fault) -> bool:
    """Return False: receivers take what they have, and tell spans by their ids."""
    del request, fault
    return False


def list_refusals(answer: Any) -> list[str]:
    """Return why items were refused of a request that was answered with a success."""
    partial = fields_in(fields_in(answer).get("partialSuccess"))
    count = int(partial.get("rejectedSpans") or partial.get("rejectedLogRecords") or 0)
    return [str(partial.get("errorMessage") or "no reason given")] * count
