"""What Langfuse is sent, against the models of its own package."""

from __future__ import annotations

import json
from base64 import b64encode
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.json_format import ParseDict
from httpx import Client
from langfuse.api.client import LangfuseAPI
from langfuse.api.core.pydantic_utilities import parse_obj_as
from langfuse.api.dataset_items.types import CreateDatasetItemRequest
from langfuse.api.datasets.types import CreateDatasetRequest
from langfuse.api.score_configs.types import CreateScoreConfigRequest
from langfuse.api.scores.types import CreateScoreRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from pydantic import ValidationError

from report.cases import BROKEN_JUDGE, keep, outcome
from vivavoce.conversations.format import NATIVE, Loss, format_named
from vivavoce.errors import UsageError
from vivavoce.features.formats.conversion import convert
from vivavoce.features.publish import langfuse
from vivavoce.features.publish.conversation import write
from vivavoce.features.publish.langfuse_scores import SCORES as SCORES_KIND
from vivavoce.records.run import Outcome
from vivavoce.records.score import Score, Usage, failed, skipped
from vivavoce.report.export import publish
from vivavoce.report.graded_run import GradedRun
from vivavoce.store.store import Store
from vivavoce.suites.evaluation import aevaluate

from .server import Tool, bodies, label, new_run, recorded_run

SCORES, INGESTION = "/api/public/scores", "/api/public/ingestion"
CONFIGS = "/api/public/score-configs"
ITEMS, DATASETS, TRACES = "/api/public/dataset-items", "/api/public/v2/datasets", "/api/public/otel/v1/traces"


@pytest.fixture
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LANGFUSE_HOST", "LANGFUSE_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("LANGFUSE_PUBLIC_KEY", "pk-lf-1")
    monkeypatch.setenv("LANGFUSE_SECRET_KEY", "sk-lf-secret-of-the-tests")


def lines(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


async def scores_of(store: Store, outcomes: list[Outcome]) -> list[dict[str, Any]]:
    graded = await keep(store, outcomes)
    return [
        score
        for request in langfuse.requests(graded, Counter())
        if request.kind == SCORES_KIND
        for score in request.body
    ]


async def test_its_own_client_sends_the_same_bodies(store: Store, tmp_path: Path) -> None:
    write(await new_run(store), tmp_path / "out", "langfuse")
    datasets, items, [scores] = (
        lines(tmp_path / "out" / f"{name}.jsonl") for name in ("datasets", "dataset-items", "scores")
    )
    with Tool().server() as server, Client() as connection:
        client: Any = LangfuseAPI(base_url=server.url, username="pk", password="sk", httpx_client=connection)
        for body in datasets:
            obj_as = parse_obj_as(CreateDatasetRequest, body)
            _quiet(client.datasets.create, name=obj_as.name, description=obj_as.description)
        for body in items:
            item = parse_obj_as(CreateDatasetItemRequest, body)
            assert not item.model_extra
            _quiet(client.dataset_items.create, **{name: getattr(item, name) for name in item.model_fields_set})
        parsed = [parse_obj_as(CreateScoreRequest, score) for score in scores]
        assert not any(score.model_extra for score in parsed)
        _quiet(client.scores.create, request=parsed)
        assert bodies(server, DATASETS) == datasets
        assert bodies(server, ITEMS) == items
        assert bodies(server, SCORES) == [scores]


def _quiet(call: Any, **arguments: Any) -> None:
    """Send a request whose answer, an empty object, may be one that the client cannot read."""
    with suppress(ValidationError):
        call(**arguments)


async def test_a_new_conversation_is_a_trace_with_a_span_for_each_turn(store: Store, tmp_path: Path) -> None:
    write(await new_run(store), tmp_path, "langfuse")
    first, second = lines(tmp_path / "traces.jsonl")
    for body in (first, second):
        ParseDict(body, ExportTraceServiceRequest())
    [scope] = first["resourceSpans"][0]["scopeSpans"]
    root, *turns = scope["spans"]
    assert len(root["traceId"]) == 32
    assert [turn["parentSpanId"] for turn in turns] == [root["spanId"]] * 3
    known = {attribute["key"]: attribute["value"]["stringValue"] for attribute in turns[1]["attributes"]}
    assert known["langfuse.observation.type"] == "generation"
    assert json.loads(known["langfuse.observation.usage_details"]) == {"input": 3, "output": 2}
    assert json.loads(known["langfuse.observation.output"])[0]["content"] == "It is Berlin."
    [scores] = lines(tmp_path / "scores.jsonl")
    mine = [score for score in scores if score["traceId"] == root["traceId"]]
    assert [score.get("observationId") for score in mine] == [None, *(turn["spanId"] for turn in turns)]
    assert [score["value"] for score in mine] == [pytest.approx(2 / 3), 1.0, 1.0, 0.0]


async def test_a_recorded_conversation_is_scored_where_it_came_from(store: Store, tmp_path: Path) -> None:
    rows = {
        "one": {"traces": ["t1"], "source": {"format": "langfuse", "id": "t1", "hash": "x"}},
        "session": {"traces": ["u1", "u2", "u3"], "source": {"format": "langfuse", "id": "s-7", "hash": "x"}},
        "uneven": {"traces": ["v1", "v2"]},
        "elsewhere": {"traces": ["w1"], "source": {"format": "openinference", "id": "w1", "hash": "x"}},
    }
    write(await recorded_run(store, rows), tmp_path, "langfuse")
    [scores] = lines(tmp_path / "scores.jsonl")
    places = {
        (score["metadata"]["sample"], score["metadata"].get("turn")): (score.get("traceId"), score.get("sessionId"))
        for score in scores
    }
    assert [places["one", turn] for turn in (None, 1)] == [("t1", None)] * 2
    assert [places["session", turn] for turn in (None, 1, 3)] == [(None, "s-7"), ("u1", None), ("u3", None)]
    assert [places["uneven", turn] for turn in (None, 2)] == [(None, "uneven")] * 2
    assert places["elsewhere", None][0] not in (None, "w1")
    assert len(lines(tmp_path / "traces.jsonl")) == 1
    items = {line["metadata"]["sample"]: line for line in lines(tmp_path / "dataset-items.jsonl")}
    assert items["one"]["sourceTraceId"] == "t1"
    assert len(items["one"]["input"]["messages"]) == 6
    assert "sourceTraceId" not in items["elsewhere"]


async def test_values_have_their_types_and_an_error_is_no_score(store: Store) -> None:
    scores = {
        "number": Score(value=0.5),
        "yes": Score(value=1.0, raw=True),
        "no": Score(value=0.0, raw=False),
        "label": Score(value=0.25, raw="poor"),
        "broken": failed(BROKEN_JUDGE),
        "skipped": skipped("no turn"),
    }
    sent_scores = {
        score["name"]: (score["dataType"], score["value"]) for score in await scores_of(store, [outcome("a", scores)])
    }
    assert sent_scores == {
        "number": ("NUMERIC", 0.5),
        "yes": ("BOOLEAN", 1.0),
        "no": ("BOOLEAN", 0.0),
        "label": ("CATEGORICAL", "poor"),
    }


async def test_what_is_no_score_is_told(store: Store, tmp_path: Path) -> None:
    scores = {"exact": failed(BROKEN_JUDGE), "judge": skipped("nothing to say")}
    report = write(await keep(store, [outcome("a", scores), outcome("b", scores)]), tmp_path, "langfuse")
    assert report == [
        "1 dataset, 2 dataset items, 2 traces",
        "left out: 2 × score that is an error",
        "left out: 2 × score that was skipped",
    ]
    assert not (tmp_path / "scores.jsonl").exists()


async def test_a_list_of_scores_stays_below_the_limit_of_the_server(store: Store, tmp_path: Path) -> None:
    long = Score(value=1.0, reason="ü" * 200_000)
    write(await keep(store, [outcome(f"s{at}", {"exact": long}) for at in range(6)]), tmp_path, "langfuse")
    sizes = [len(line) for line in (tmp_path / "scores.jsonl").read_bytes().splitlines()]
    assert len(sizes) == 3
    assert max(sizes) < 1_048_576
    graded = await keep(store, [outcome(f"s{at}") for at in range(201)], "run-2")
    batch_sizes = [request.items for request in langfuse.requests(graded, Counter()) if request.kind == SCORES_KIND]
    assert batch_sizes == [100, 100, 1]


async def test_the_same_run_has_the_same_ids_and_times_again(store: Store, tmp_path: Path) -> None:
    graded = await new_run(store)
    label(graded, "a", "ida", "pass")
    for name in ("one", "two"):
        write(graded, tmp_path / name, "langfuse")
    for kind in langfuse.kinds():
        assert (tmp_path / "one" / kind.file).read_bytes() == (tmp_path / "two" / kind.file).read_bytes()
    [scores] = lines(tmp_path / "one" / "scores.jsonl")
    assert len({score["id"] for score in scores}) == len(scores) == 5
    assert {score["timestamp"] for score in scores} == {"1970-01-01T00:16:40Z"}


@pytest.mark.usefixtures("keys")
async def test_it_is_sent_in_order_with_the_keys_and_tried_again(
    store: Store, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    graded = await new_run(store)
    write(graded, tmp_path, "langfuse")
    slow: list[tuple[int, Any]] = [(429, {}), (500, {}), (200, {})]
    accepted: list[tuple[int, Any]] = [(500, {}), (202, {"message": "Accepted"})]
    with Tool({DATASETS: slow, TRACES: slow, SCORES: accepted}).server() as server:
        monkeypatch.setenv("LANGFUSE_HOST", server.url)
        [line] = publish(graded, "langfuse")
    assert line == f"1 dataset, 2 dataset items, 2 traces, 5 scores to Langfuse at {server.url}"
    user = b64encode(b"pk-lf-1:sk-lf-secret-of-the-tests").decode()
    assert {request.headers["Authorization"] for request in server.requests} == {f"Basic {user}"}
    assert {
        request.headers.get("x-langfuse-ingestion-version") for request in server.requests if request.path == TRACES
    } == {"4"}
    paths = list(dict.fromkeys(request.path for request in server.requests))
    assert paths == [DATASETS, ITEMS, TRACES, SCORES]
    for path, name in ((ITEMS, "dataset-items"), (TRACES, "traces"), (SCORES, "scores")):
        sent = [json.dumps(body) for body in bodies(server, path)]
        assert set(sent) == {json.dumps(body) for body in lines(tmp_path / f"{name}.jsonl")}


@pytest.mark.usefixtures("keys")
async def test_a_server_that_takes_no_list_of_scores_gets_events(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    graded = await keep(store, [outcome(f"s{at}") for at in range(2100)])
    answers: dict[str, list[tuple[int, Any]]] = {
        SCORES: [(400, {"message": "expected object"})],
        INGESTION: [(207, {"successes": [], "errors": []})],
    }
    with Tool(answers).server() as server:
        monkeypatch.setenv("LANGFUSE_BASE_URL", server.url)
        publish(graded, "langfuse")
    batches = bodies(server, INGESTION)
    events = [event for batch in batches for event in batch["batch"]]
    assert len(events) == len({event["body"]["id"] for event in events}) == 2100
    assert {event["type"] for event in events} == {"score-create"}
    assert len(bodies(server, SCORES)) < len(batches)


@pytest.mark.usefixtures("keys")
async def test_refusals_are_told_with_their_reasons_and_without_the_key(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    graded = await new_run(store)
    some = {"accepted": 4, "rejected": 1, "errors": [{"message": "value is not allowed by the config"}]}
    with Tool({SCORES: [(207, some)]}).server() as server:
        monkeypatch.setenv("LANGFUSE_BASE_URL", server.url)
        with pytest.raises(UsageError, match="Langfuse refused 1 item: value is not allowed by the config"):
            publish(graded, "langfuse")
    with Tool({DATASETS: [(401, {"error": "no user sk-lf-secret-of-the-tests"})]}).server() as server:
        monkeypatch.setenv("LANGFUSE_BASE_URL", server.url)
        with pytest.raises(UsageError, match=r"Langfuse: POST .* answered 401 Unauthorized") as refused:
            publish(graded, "langfuse")
    assert "secret-of-the-tests" not in str(refused.value)


@pytest.mark.parametrize("missing", ["LANGFUSE_PUBLIC_KEY", "LANGFUSE_SECRET_KEY"])
@pytest.mark.usefixtures("keys")
async def test_missing_keys_are_named(store: Store, monkeypatch: pytest.MonkeyPatch, missing: str) -> None:
    monkeypatch.delenv(missing)
    with pytest.raises(UsageError, match="set LANGFUSE_PUBLIC_KEY and LANGFUSE_SECRET_KEY"):
        publish(await new_run(store), "langfuse")


async def test_costs_and_failures_of_turns_are_on_their_spans(store: Store) -> None:
    stored = outcome("a")
    turn = stored.attempt.trajectory.turns[0].model_copy(
        update={"usage": Usage(input_tokens=1, calls=1, cost=0.5), "failure": BROKEN_JUDGE}
    )
    trajectory = stored.attempt.trajectory.model_copy(update={"turns": [turn]})
    graded = await keep(
        store, [stored.model_copy(update={"attempt": stored.attempt.model_copy(update={"trajectory": trajectory})})]
    )
    [body] = [request.body for request in langfuse.requests(graded, Counter()) if request.kind == langfuse.TRACES]
    span = body["resourceSpans"][0]["scopeSpans"][0]["spans"][1]
    known = {attribute["key"]: attribute["value"]["stringValue"] for attribute in span["attributes"]}
    assert json.loads(known["langfuse.observation.cost_details"]) == {"total": 0.5}
    assert known["langfuse.observation.level"] == "ERROR"
    assert span["status"] == {"code": 2, "message": "no verdict"}


async def test_what_was_exported_from_langfuse_is_scored_there(tmp_path: Path) -> None:
    messages = [{"role": "user", "content": "Hi."}]
    observation = {
        "id": "o1",
        "traceId": "trace-of-langfuse",
        "type": "GENERATION",
        "startTime": "2026-01-01T00:00:00Z",
        "input": messages,
        "output": {"role": "assistant", "content": "Hello!"},
    }
    (tmp_path / "export.jsonl").write_text(json.dumps(observation) + "\n", "utf-8")
    convert(tmp_path / "export.jsonl", tmp_path / "rows.jsonl", format_named(NATIVE), Loss())
    result = await aevaluate(tmp_path / "rows.jsonl", "refusal", store=tmp_path / "vivavoce.db")
    with Store.open(result.place, create=False) as store:
        report = write(GradedRun(store, result.run, result.grading), tmp_path / "out", "langfuse")
    assert report == ["1 dataset, 1 dataset item, 1 score"]
    [[score]] = lines(tmp_path / "out" / "scores.jsonl")
    assert score["traceId"] == "trace-of-langfuse"
    assert "environment" not in score


async def labelled_run(store: Store) -> GradedRun:
    graded = await new_run(store)
    label(graded, "a", "ida", "pass", grader="correctness", note="friendly")
    label(graded, "a", "bo", "unsure", grader="correctness", turn=1)
    label(graded, "b", "ida", "fail")
    return graded


@pytest.mark.usefixtures("keys")
async def test_labels_are_scores_by_people_each_with_its_config(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    graded = await labelled_run(store)
    other = {"id": "c0", "name": "label", "dataType": "NUMERIC", "isArchived": False}
    there: dict[str, Any] = {"id": "c1", "name": "label", "dataType": "CATEGORICAL", "isArchived": False}
    there["categories"] = [{"label": label, "value": at} for at, label in enumerate(("fail", "pass", "unsure"))]
    pages = [(200, {"data": [config], "meta": {"totalPages": 2}}) for config in (other, there)]
    with Tool({CONFIGS: [*pages, (200, {"id": "c2", "name": "correctness"})]}).server() as server:
        monkeypatch.setenv("LANGFUSE_BASE_URL", server.url)
        [line] = publish(graded, "langfuse")
    assert line.startswith("1 dataset, 2 dataset items, 2 traces, 5 scores, 3 labels to")
    [config] = bodies(server, CONFIGS)
    assert not parse_obj_as(CreateScoreConfigRequest, config).model_extra
    assert config["name"] == "correctness"
    [scores, labels] = bodies(server, SCORES)
    parsed = [parse_obj_as(CreateScoreRequest, label) for label in labels]
    assert not any(score.model_extra for score in parsed)
    assert {(label["source"], label["dataType"]) for label in labels} == {("ANNOTATION", "CATEGORICAL")}
    assert [(score.name, score.value, score.comment, score.config_id) for score in parsed] == [
        ("correctness", "pass", "friendly", "c2"),
        ("correctness", "unsure", None, "c2"),
        ("label", "fail", None, "c1"),
    ]
    assert [score.observation_id is None for score in parsed] == [True, False, True]
    assert [label["metadata"]["author"] for label in labels] == ["ida", "bo", "ida"]
    assert not {label["id"] for label in labels} & {score["id"] for score in scores}


@pytest.mark.usefixtures("keys")
@pytest.mark.parametrize("knows_configs", [True, False])
async def test_older_servers_get_labels_without_a_source(
    store: Store, monkeypatch: pytest.MonkeyPatch, *, knows_configs: bool
) -> None:
    graded = await labelled_run(store)
    configs: list[tuple[int, Any]] = (
        [(200, {"data": []}), (200, {"id": "c1"}), (200, {"id": "c2"})] if knows_configs else [(404, {})]
    )
    answers: dict[str, list[tuple[int, Any]]] = {CONFIGS: configs, SCORES: [(200, {}), (400, {"message": "source"})]}
    with Tool(answers).server() as server:
        monkeypatch.setenv("LANGFUSE_BASE_URL", server.url)
        publish(graded, "langfuse")
    [batch] = bodies(server, INGESTION)
    assert {event["type"] for event in batch["batch"]} == {"score-create"}
    sent = [event["body"] for event in batch["batch"]]
    assert [(score["name"], score["value"]) for score in sent][1:] == [("correctness", "unsure"), ("label", "fail")]
    assert not any("source" in score or "configId" in score for score in sent)


@pytest.mark.usefixtures("keys")
async def test_a_label_that_changed_is_the_same_score(store: Store, tmp_path: Path) -> None:
    graded = await labelled_run(store)
    write(graded, tmp_path, "langfuse")
    [before] = lines(tmp_path / "labels.jsonl")
    label(graded, "b", "ida", "pass", created_at=3000.0)
    write(graded, tmp_path, "langfuse")
    [after] = lines(tmp_path / "labels.jsonl")
    assert [(score["id"], score["timestamp"]) for score in after] == [
        (score["id"], score["timestamp"]) for score in before
    ]
    assert [score["value"] for score in after] == ["pass", "unsure", "pass"]


async def test_a_config_has_a_name_that_langfuse_takes(store: Store, tmp_path: Path) -> None:
    long = [f"is it {end} what was asked for, in every turn?" for end in ("really", "truly")]
    graded = await keep(store, [outcome("a", dict.fromkeys(long, 1.0))])
    for name in long:
        label(graded, "a", "ida", "pass", grader=name)
    write(graded, tmp_path, "langfuse")
    [labels] = lines(tmp_path / "labels.jsonl")
    assert [label["metadata"]["grader"] for label in labels] == long
    assert len({label["name"] for label in labels}) == 2
    assert all(len(label["name"]) <= 35 and "?" not in label["name"] for label in labels)


@pytest.mark.usefixtures("keys")
async def test_a_config_that_is_not_made_is_named(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    with Tool().server() as server:
        monkeypatch.setenv("LANGFUSE_BASE_URL", server.url)
        with pytest.raises(
            UsageError, match=r"did not create the score config '(correctness|label)', which labels need"
        ):
            publish(await labelled_run(store), "langfuse")
