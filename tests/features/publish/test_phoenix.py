"""What Phoenix is sent, against the types of its own client and what that posts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NotRequired, get_origin, get_type_hints

import pytest
from phoenix.client import Client
from phoenix.client.__generated__ import v1

from report.cases import keep, outcome
from vivavoce.errors import UsageError
from vivavoce.features.publish.conversation import write
from vivavoce.records.score import Score, Usage
from vivavoce.report.export import publish
from vivavoce.report.graded_run import GradedRun
from vivavoce.store.store import Store

from .server import Tool, bodies, label, new_run, recorded_run

UPLOAD, PROJECTS, SPANS = "/v1/datasets/upload", "/v1/projects", "/v1/projects/vivavoce/spans"
TYPES: dict[str, Any] = {
    "span_annotations": v1.SpanAnnotationData,
    "trace_annotations": v1.TraceAnnotationData,
    "session_annotations": v1.SessionAnnotationData,
    "spans": v1.Span,
}


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ENDPOINT", "COLLECTOR_ENDPOINT", "BASE_URL", "API_KEY", "PROJECT", "PROJECT_NAME"):
        monkeypatch.delenv(f"PHOENIX_{name}", raising=False)


def lines(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def annotations_in(folder: Path, of: str) -> list[dict[str, Any]]:
    file = folder / f"{of}_annotations.jsonl"
    return [item for body in lines(file) for item in body["data"]] if file.exists() else []


async def test_bodies_have_the_types_of_its_client(store: Store, tmp_path: Path) -> None:
    write(await new_run(store), tmp_path / "new", "phoenix")
    imported = {"session": {"traces": ["u1", "u2"], "source": {"format": "openinference", "id": "s-7", "hash": "x"}}}
    with Store.open(f"{store.place}-2") as other:
        write(await recorded_run(other, imported), tmp_path / "imported", "phoenix")
    seen: set[str] = set()
    for folder in (tmp_path / "new", tmp_path / "imported"):
        for name, type_ in TYPES.items():
            file = folder / f"{name}.jsonl"
            for item in [item for body in lines(file) for item in body["data"]] if file.exists() else []:
                required, known = keys_of(type_)
                assert required <= set(item) <= known
                assert set(item.get("result", {})) <= keys_of(v1.AnnotationResult)[1]
                assert item.get("annotator_kind", "LLM") in ("LLM", "CODE", "HUMAN")
                seen.add(name)
    assert seen == set(TYPES)


def keys_of(type_: Any) -> tuple[set[str], set[str]]:
    """Return the keys that an object must have, and all that it may have."""
    hints = get_type_hints(type_, include_extras=True)
    return {name for name, hint in hints.items() if get_origin(hint) is not NotRequired}, set(hints)


async def test_its_own_client_posts_the_same_dataset_and_annotations(store: Store, tmp_path: Path) -> None:
    write(await new_run(store), tmp_path, "phoenix")
    [upload] = lines(tmp_path / "datasets.jsonl")
    examples = [
        {"input": address_text, "output": expected, "metadata": known, "id": name}
        for address_text, expected, known, name in zip(
            *(upload[key] for key in ("inputs", "outputs", "metadata", "example_ids")), strict=True
        )
    ]
    with Tool({"/arize_phoenix_version": [(200, "17.0.0")]}).server() as server:
        client: Any = Client(base_url=server.url)
        with pytest.raises(KeyError, match="data"):
            client.datasets.create_dataset(
                name=upload["name"], examples=examples, dataset_description=upload["description"]
            )
        client.traces.log_trace_annotations(trace_annotations=annotations_in(tmp_path, "trace"))
        client.spans.log_span_annotations(span_annotations=annotations_in(tmp_path, "span"))
        client.spans.log_spans(project_identifier="vivavoce", spans=lines(tmp_path / "spans.jsonl")[0]["data"])
        assert next(request.path for request in server.requests if request.method == "POST") == f"{UPLOAD}?sync=true"
        assert bodies(server, f"{UPLOAD}?sync=true") == [upload]
        for of in ("trace", "span"):
            assert bodies(server, f"/v1/{of}_annotations") == lines(tmp_path / f"{of}_annotations.jsonl")
        assert bodies(server, SPANS) == lines(tmp_path / "spans.jsonl")[:1]


async def test_turns_are_annotated_on_their_spans_and_the_whole_on_its_trace(store: Store, tmp_path: Path) -> None:
    write(await new_run(store), tmp_path, "phoenix")
    root, *turns = lines(tmp_path / "spans.jsonl")[0]["data"]
    assert [annotation["span_id"] for annotation in annotations_in(tmp_path, "span")] == [
        turn["context"]["span_id"] for turn in turns
    ]
    whole, other = annotations_in(tmp_path, "trace")
    assert whole["trace_id"] == root["context"]["trace_id"]
    assert whole["result"] == {"label": "fail", "score": pytest.approx(2 / 3), "explanation": "2/3 turns passed"}
    assert other["result"] == {"label": "fail", "score": 0.25, "explanation": "why"}
    assert {annotation["annotator_kind"] for annotation in (whole, other)} == {"CODE"}


async def test_imported_conversations_are_annotated_where_they_came_from(store: Store, tmp_path: Path) -> None:
    rows = {
        "one": {"traces": ["t1"], "source": {"format": "otel", "id": "t1", "hash": "x"}},
        "session": {"traces": ["u1", "u2", "u3"], "source": {"format": "openinference", "id": "s-7", "hash": "x"}},
        "uneven": {"traces": ["v1", "v2"]},
    }
    write(await recorded_run(store, rows), tmp_path, "phoenix")
    assert not (tmp_path / "spans.jsonl").exists()
    assert not annotations_in(tmp_path, "span")
    sessions = [
        (annotation["session_id"], annotation["metadata"].get("turn"))
        for annotation in annotations_in(tmp_path, "session")
    ]
    assert sessions == [("s-7", None), ("uneven", None), ("uneven", 1), ("uneven", 2), ("uneven", 3)]
    traces = [
        (annotation["trace_id"], annotation["metadata"].get("turn")) for annotation in annotations_in(tmp_path, "trace")
    ]
    assert traces == [("t1", None), ("t1", 1), ("t1", 2), ("t1", 3), ("u1", 1), ("u2", 2), ("u3", 3)]
    for of in ("trace", "session"):
        annotations = annotations_in(tmp_path, of)
        assert len(
            {(annotation["name"], annotation[f"{of}_id"], annotation["identifier"]) for annotation in annotations}
        ) == len(annotations)


async def test_judges_and_labels_are_told(store: Store, tmp_path: Path) -> None:
    judged = Score(value=0.5, raw="poor", passed=False, usage=Usage(calls=1))
    write(await keep(store, [outcome("a", {"judge": judged})]), tmp_path, "phoenix")
    [annotation] = annotations_in(tmp_path, "trace")
    assert annotation["annotator_kind"] == "LLM"
    assert annotation["result"] == {"label": "poor", "score": 0.5}


async def test_labels_are_annotations_by_people(store: Store, tmp_path: Path) -> None:
    graded = await new_run(store)
    label(graded, "a", "ida", "pass", grader="correctness", note="friendly")
    label(graded, "a", "bo", "fail", grader="correctness")
    label(graded, "a", "bo", "unsure", turn=1)
    write(graded, tmp_path, "phoenix")
    by_people = [
        annotation for annotation in annotations_in(tmp_path, "trace") if annotation["annotator_kind"] == "HUMAN"
    ]
    assert [(person["name"], person["identifier"], person["result"]) for person in by_people] == [
        ("correctness", "run-1 ida", {"label": "pass", "score": 1.0, "explanation": "friendly"}),
        ("correctness", "run-1 bo", {"label": "fail", "score": 0.0}),
    ]
    [of_turn] = [
        annotation for annotation in annotations_in(tmp_path, "span") if annotation["annotator_kind"] == "HUMAN"
    ]
    root, _, second, _ = lines(tmp_path / "spans.jsonl")[0]["data"]
    assert (of_turn["name"], of_turn["span_id"]) == ("label", second["context"]["span_id"])
    assert of_turn["result"] == {"label": "unsure"}
    assert by_people[0]["trace_id"] == root["context"]["trace_id"]
    assert by_people[0]["metadata"]["author"] == "ida"
    for annotation in (*by_people, of_turn):
        required, known = keys_of(v1.TraceAnnotationData if "trace_id" in annotation else v1.SpanAnnotationData)
        assert required <= set(annotation) <= known


async def test_a_project_that_is_there_is_not_made_again(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    there = {f"{PROJECTS}/vivavoce": [(200, {"data": {"name": "vivavoce"}})], PROJECTS: [(500, "UNIQUE")]}
    with Tool(there).server() as server:
        monkeypatch.setenv("PHOENIX_ENDPOINT", server.url)
        [line] = publish(await new_run(store), "phoenix")
    assert "1 project already exists" in line
    assert not bodies(server, PROJECTS)


async def test_the_span_of_the_whole_has_the_conversation(store: Store, tmp_path: Path) -> None:
    write(await new_run(store), tmp_path, "phoenix")
    root, *turns = (span["attributes"] for span in lines(tmp_path / "spans.jsonl")[0]["data"])
    messages = [*json.loads(root["input.value"]), *json.loads(root["output.value"])]
    assert [message["content"] for message in messages] == ["Hi", "Paris", "Hi", "It is Berlin.", "Hi", "Madrid"]
    assert [root["openinference.span.kind"], *(turn["openinference.span.kind"] for turn in turns)] == [
        "CHAIN",
        *["AGENT"] * 3,
    ]


async def test_a_part_of_a_dataset_is_not_uploaded_for_it_would_remove_the_rest(store: Store, tmp_path: Path) -> None:
    graded = await new_run(store)
    some = GradedRun(store, graded.run.model_copy(update={"options": {"max_samples": 2}}), graded.grading)
    report = write(some, tmp_path, "phoenix")
    assert report[-1] == "left out: 2 × example of a dataset that the run has only in part"
    assert not (tmp_path / "datasets.jsonl").exists()


async def test_it_is_sent_in_order_and_again_without_doubles(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    graded = await new_run(store)
    monkeypatch.setenv("PHOENIX_API_KEY", "key-of-the-tests-of-phoenix")
    with Tool({UPLOAD: [(429, {}), (500, {}), (200, {})]}).server() as server:
        monkeypatch.setenv("PHOENIX_COLLECTOR_ENDPOINT", f"{server.url}/v1/traces")
        [line] = publish(graded, "phoenix")
    assert line == (
        f"2 examples, 1 project, 2 traces, 3 span annotations, 2 trace annotations to Phoenix at {server.url}"
    )
    assert {request.headers["Authorization"] for request in server.requests} == {"Bearer key-of-the-tests-of-phoenix"}
    paths = list(
        dict.fromkeys(request.path.partition("?")[0] for request in server.requests if request.method == "POST")
    )
    assert paths == [UPLOAD, PROJECTS, SPANS, "/v1/span_annotations", "/v1/trace_annotations"]
    double = {
        "error": "Request contains invalid or duplicate spans",
        "total_received": 4,
        "total_queued": 0,
        "total_duplicates": 4,
    }
    there = [(400, double), (400, {"detail": json.dumps({**double, "total_received": 2, "total_duplicates": 2})})]
    with Tool({PROJECTS: [(409, {})], SPANS: there}).server() as server:
        monkeypatch.setenv("PHOENIX_COLLECTOR_ENDPOINT", server.url)
        [line] = publish(graded, "phoenix")
    assert line.startswith(
        "2 examples, 3 span annotations, 2 trace annotations, 1 project already exists, 2 traces already exist"
    )


async def test_spans_of_which_some_are_refused_are_an_error(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    some = {"error": "invalid", "total_received": 4, "total_queued": 0, "total_duplicates": 1, "total_invalid": 3}
    with Tool({SPANS: [(400, some)]}).server() as server:
        monkeypatch.setenv("PHOENIX_ENDPOINT", server.url)
        with pytest.raises(UsageError, match=r"Phoenix: POST .*/spans answered 400"):
            publish(await new_run(store), "phoenix")


async def test_an_older_server_gets_a_new_dataset(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    with Tool({UPLOAD: [(422, {"detail": "action"}), (200, {})]}).server() as server:
        monkeypatch.setenv("PHOENIX_ENDPOINT", server.url)
        publish(await new_run(store), "phoenix")
    assert [body["action"] for body in bodies(server, f"{UPLOAD}?sync=true")] == ["update", "create"]


async def test_the_project_of_new_traces_is_named_by_the_environment(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PHOENIX_PROJECT_NAME", "my bots")
    with Tool().server() as server:
        monkeypatch.setenv("PHOENIX_ENDPOINT", server.url)
        publish(await new_run(store), "phoenix")
    assert bodies(server, PROJECTS) == [{"name": "my bots"}]
    assert len(bodies(server, "/v1/projects/my%20bots/spans")) == 2
