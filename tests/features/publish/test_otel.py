"""What a receiver of OpenTelemetry is sent, read by OpenTelemetry's own classes and by our receiver."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any, cast

import pytest
from google.protobuf.json_format import ParseDict
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from report.cases import keep, outcome
from vivavoce.conversations.format import Loss
from vivavoce.conversations.reading import read
from vivavoce.errors import UsageError
from vivavoce.features.formats.otel import FORMAT
from vivavoce.features.publish.conversation import write
from vivavoce.features.publish.otel import address
from vivavoce.features.watch.intake import read_document
from vivavoce.records.score import Failure, Score, Usage
from vivavoce.report.export import publish
from vivavoce.store.store import Store

from .server import Tool, bodies, new_run, recorded_run

TRACE, SPAN = "a" * 32, "b" * 16


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ENDPOINT", "HEADERS"):
        monkeypatch.delenv(f"OTEL_EXPORTER_OTLP_{name}", raising=False)


def lines(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()] if path.exists() else []


def spans(folder: Path) -> list[dict[str, Any]]:
    batches = [line["resourceSpans"][0]["scopeSpans"][0]["spans"] for line in lines(folder / "traces.jsonl")]
    return [{**span, "known": attributes(span)} for some in batches for span in some]


def events(folder: Path) -> list[dict[str, Any]]:
    batches = [line["resourceLogs"][0]["scopeLogs"][0]["logRecords"] for line in lines(folder / "logs.jsonl")]
    return [{**log, "known": attributes(log)} for some in batches for log in some]


def attributes(item: dict[str, Any]) -> dict[str, Any]:
    return {attribute["key"]: next(iter(attribute["value"].values())) for attribute in item["attributes"]}


def in_base64(value: Any) -> Any:
    """Return OTLP's JSON as that of protocol buffers, which has ids in base64."""
    if isinstance(value, list):
        return [in_base64(item) for item in cast("list[Any]", value)]
    if not isinstance(value, dict):
        return value
    ids = ("traceId", "spanId", "parentSpanId")
    return {
        key: base64.b64encode(bytes.fromhex(member)).decode() if key in ids else in_base64(member)
        for key, member in cast("dict[str, Any]", value).items()
    }


async def test_bodies_are_requests_of_otlp(store: Store, tmp_path: Path) -> None:
    write(await new_run(store), tmp_path, "otel")
    for body in lines(tmp_path / "traces.jsonl"):
        ParseDict(in_base64(body), ExportTraceServiceRequest())
    for body in lines(tmp_path / "logs.jsonl"):
        ParseDict(in_base64(body), ExportLogsServiceRequest())


async def test_a_run_leads_to_samples_turns_and_scores(store: Store, tmp_path: Path) -> None:
    graded = await new_run(store)
    assert write(graded, tmp_path, "otel") == [f"{len(spans(tmp_path))} spans, {len(events(tmp_path))} scores"]
    all_spans = spans(tmp_path)
    by_id = {span["spanId"]: span for span in all_spans}
    assert len(by_id) == len(all_spans)
    (run,) = [span for span in all_spans if span["name"].startswith("run ")]
    samples = [span for span in all_spans if span.get("links")]
    assert [sample["known"]["vivavoce.sample"] for sample in samples] == ["a", "b"]
    assert {sample["links"][0]["spanId"] for sample in samples} == {run["spanId"]}
    turns = [span for span in all_spans if span["name"].startswith("turn ")]
    assert [by_id[turn["parentSpanId"]]["known"]["vivavoce.sample"] for turn in turns] == ["a", "a", "a", "b"]
    scores = [span for span in all_spans if span["name"].startswith("evaluate ")]
    assert {score["parentSpanId"] for score in scores} <= {span["spanId"] for span in (*samples, *turns)}
    assert all(span["known"]["vivavoce.run"] == graded.run.id for span in all_spans)
    assert {span["traceId"] for span in (*turns, *scores)} == {sample["traceId"] for sample in samples}


async def test_scores_are_events_of_the_conventions_on_the_span_that_they_are_about(
    store: Store, tmp_path: Path
) -> None:
    write(await new_run(store), tmp_path, "otel")
    by_id = {span["spanId"]: span["name"] for span in spans(tmp_path)}
    all_events = events(tmp_path)
    assert {event["eventName"] for event in all_events} == {"gen_ai.evaluation.result"}
    assert [by_id[event["spanId"]] for event in all_events] == ["a", "turn 1", "turn 2", "turn 3", "b"]
    whole, first, _, third, *_ = (event["known"] for event in all_events)
    assert whole["gen_ai.evaluation.name"] == "correctness"
    assert whole["gen_ai.evaluation.score.value"] == pytest.approx(2 / 3)
    assert whole["gen_ai.evaluation.score.label"] == "fail"
    assert whole["gen_ai.evaluation.explanation"] == "2/3 turns passed"
    assert (first["gen_ai.evaluation.score.label"], third["gen_ai.evaluation.score.label"]) == ("pass", "fail")


async def test_an_error_is_no_score_and_a_skip_is_told(store: Store, tmp_path: Path) -> None:
    failure = Failure(kind="timeout", message="the judge did not answer", blame="judge")
    broken = Score(state="error", reason=failure.message, failure=failure, usage=Usage(input_tokens=3, calls=1))
    grades = {"judge": broken, "other": Score(state="skipped", reason="needs a goal")}
    assert write(await keep(store, [outcome("a", grades)]), tmp_path, "otel")[1:] == [
        "left out: 1 × score that was skipped"
    ]
    (event,) = events(tmp_path)
    assert event["known"]["error.type"] == "timeout"
    assert "gen_ai.evaluation.score.value" not in event["known"]
    assert "gen_ai.evaluation.score.label" not in event["known"]
    (span,) = [span for span in spans(tmp_path) if span["name"] == "evaluate judge"]
    assert span["status"] == {"code": 2, "message": "the judge did not answer"}
    assert span["known"]["gen_ai.usage.input_tokens"] == "3"


async def test_conversations_that_came_as_traces_are_scored_where_they_came_from(store: Store, tmp_path: Path) -> None:
    graded = await recorded_run(store, {"one": {"traces": [TRACE]}, "session": {"traces": [TRACE, "c" * 32]}})
    write(graded, tmp_path, "otel")
    assert [span["name"].split()[0] for span in spans(tmp_path)] == ["run"]
    assert [event.get("traceId") for event in events(tmp_path)][:1] == [TRACE]
    assert any(event["known"].get("gen_ai.conversation.id") == "session" for event in events(tmp_path))


async def test_what_is_written_can_be_read_again_as_conversations(store: Store, tmp_path: Path) -> None:
    graded = await new_run(store)
    write(graded, tmp_path, "otel")
    rows = [row for _, row in read(tmp_path / "traces.jsonl", FORMAT, Loss())]
    contents = {tuple(message["content"] for message in row["messages"]) for row in rows}
    expected = {tuple(message.text for message in outcome.attempt.trajectory.messages) for outcome in graded.outcomes()}
    assert contents == expected


async def test_our_own_receiver_keeps_them_apart_from_production(store: Store, tmp_path: Path) -> None:
    write(await new_run(store), tmp_path, "otel")
    assert all(arrival.is_own for body in lines(tmp_path / "traces.jsonl") for arrival in read_document(body).arrivals)
    assert not [arrival for body in lines(tmp_path / "logs.jsonl") for arrival in read_document(body).arrivals]


async def test_a_run_is_sent_where_exporters_send_theirs(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    graded = await new_run(store)
    write(graded, tmp_path, "otel")
    with Tool().server() as server:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", server.url)
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20key,x-team = a")
        first = publish(graded, "otel")
        for path, file in (("/v1/traces", "traces.jsonl"), ("/v1/logs", "logs.jsonl")):
            assert sorted(map(json.dumps, bodies(server, path))) == sorted(map(json.dumps, lines(tmp_path / file)))
        assert publish(graded, "otel") == first
        headers = {name.lower(): value for name, value in server.requests[0].headers.items()}
        assert (headers["authorization"], headers["x-team"]) == ("Bearer key", "a")
        assert "traceparent" not in headers


async def test_what_a_receiver_refuses_is_told(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    graded = await new_run(store)
    rejected = {"partialSuccess": {"rejectedSpans": "2", "errorMessage": "too old"}}
    for answers, words in (
        ({"/v1/traces": [(200, rejected)]}, "OpenTelemetry refused 4 items: too old"),
        ({"/v1/logs": [(404, "no logs here")]}, "answered 404"),
    ):
        with Tool(answers).server() as server:
            monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", server.url)
            with pytest.raises(UsageError, match=words):
                publish(graded, "otel")


@pytest.mark.parametrize("headers", ["authorization", "=x"])
def test_headers_that_are_none_are_named(headers: str, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", headers)
    with pytest.raises(UsageError, match="OTEL_EXPORTER_OTLP_HEADERS"):
        address()
