"""`${NAME}` in what came with a request is text: it never becomes a value of the environment of the server."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import vivavoce
from server.live import get, send, serving
from vivavoce.client import Client
from vivavoce.records.run import Run
from vivavoce.server.policy import ServerPolicy
from vivavoce.store.store import Store
from vivavoce.suites.command_line import judging_suite
from vivavoce.suites.command_line import testing_suite as suite_of_test
from vivavoce.suites.document import fill_variables
from vivavoce.suites.load import Suite, dump_spec, stored_suite, suite_record_from
from vivavoce.testing import LoopbackServer

SOURCES = Path(vivavoce.__file__).parent
VALUE = "the-value-of-the-server"
TALK = [{"role": "user", "content": "When do you open?"}, {"role": "assistant", "content": "At nine."}]
TEXTS = (
    *("${HIDDEN}", "$${HIDDEN}", "$$${HIDDEN}", "${${HIDDEN}}", "${a b}"),
    "${HIDDEN:-x} $${not a name} ${UNSET_HIDDEN}",
)


def metric(text: str) -> dict[str, Any]:
    return {"metric": "safety", "name": "asked", "config": {"prompt": f"Rate it. {text}"}}


def regex_metric(text: str) -> dict[str, Any]:
    config = {"separator": text}
    return {"metric": "regex_match", "name": "joined", "extractor": "all_assistant", "extractor_config": config}


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:  # pyright: ignore[reportUnusedFunction]
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HIDDEN", VALUE)
    monkeypatch.delenv("UNSET_HIDDEN", raising=False)


@pytest.fixture
def judge() -> Iterator[LoopbackServer]:
    with LoopbackServer(lambda _: {"violations": [], "reasoning": "fine", "confidence": 0.9}) as server:
        yield server


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(str(tmp_path / "kept.db")) as store:
        yield store


@pytest.fixture
def url(store: Store, tmp_path: Path, judge: LoopbackServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setenv("VIVAVOCE_JUDGE", f"{judge.base_url}#judge")
    with serving(store, ServerPolicy(tmp_path)) as url:
        yield url


def questions(exchange: Any) -> str:
    assert not exchange["missing"], exchange
    return json.dumps(exchange["calls"])


@pytest.mark.parametrize("text", TEXTS)
def test_what_a_judge_was_asked_is_shown_as_the_request_had_it(url: str, judge: LoopbackServer, text: str) -> None:
    conversations = [{"id": "a", "messages": TALK}]
    with Client(url) as client:
        run = client.submit("evaluation", conversations=conversations, metrics=[metric(text)]).wait().run
    evaluated = send("POST", f"{url}/api/v1/test-results/{run}/a/evaluations", {"metrics": [metric(text)]})
    place = f"{url}/api/v1/runs/{run}/samples/a/0/exchange?grader=asked"
    for exchange in (get(place).json(), get(f"{place}&grading={evaluated.json()['grading']}").json()):
        assert json.dumps(text)[1:-1] in questions(exchange)
    sent = json.dumps([request.body for request in judge.requests])
    assert (len(judge.requests), VALUE in sent, json.dumps(text)[1:-1] in sent) == (2, False, True)


def test_records_of_former_versions_are_not_filled_either(url: str, store: Store) -> None:
    with Client(url) as client:
        record = client.submit("evaluation", conversations=[{"id": "a", "messages": TALK}], metrics=["turn_count"])
        run = store.run(record.wait().run or "")
    spec = json.loads(json.dumps(run.spec))
    spec["graders"]["turn_count"]["config"] = {"text": "${HIDDEN} ${UNSET_HIDDEN}"}
    old = run.model_copy(update={"spec": spec})
    assert dump_spec(stored_suite(old))["graders"]["turn_count"]["config"]["text"] == "${HIDDEN} ${UNSET_HIDDEN}"


def test_a_run_whose_metrics_have_such_texts_goes_on(url: str) -> None:
    text = " ".join(TEXTS)
    conversations = [{"id": name, "messages": TALK} for name in ("a", "b")]
    metrics = [metric(text), regex_metric(text)]
    with Client(url) as client:
        first = client.submit(
            "evaluation", conversations=conversations, metrics=metrics, max_calls=1, max_concurrent=1
        ).wait()
        assert first.status == "interrupted"
        rest = client.submit("resume", resume=first.run).wait()
    assert (rest.status, rest.done, rest.detail) == ("finished", 2, None)


def suites(text: str) -> list[Suite]:
    """Return what commands and requests describe, with a text in it."""
    target = {"kind": "function", "function": "bot.py:reply", "name": text}
    row = {"goal": text, "input": [text], "policy": text}
    tester = {"model": "openai:m", "persona": text, "strategy": text}
    graders = {"kind": {"kind": "model_judge", "prompt": text, "model": "openai:m", "extractor_config": {"a": [text]}}}
    return [
        suite_of_test(target, row, tester, graders, Path()),
        judging_suite(Path("talks.jsonl"), [metric(text)], "openai:m", name=text),
    ]


@pytest.mark.parametrize("text", TEXTS)
def test_the_record_of_a_described_suite_gives_the_suite_again(text: str) -> None:
    for suite in suites(text):
        spec = dump_spec(suite)
        run = Run(id="r", suite="s", spec=spec, base="", options={"suite": suite.source}, started_at=0)
        assert VALUE not in json.dumps(spec)
        assert stored_suite(run).spec == suite.spec
        assert dump_spec(stored_suite(run)) == spec
        assert fill_variables(suite_record_from(spec, "written-to-a-file.yaml")) == suite.spec.model_dump(
            mode="json", exclude_none=True
        )


def test_every_reader_of_a_suite_says_where_it_comes_from() -> None:
    readers = {
        path.relative_to(SOURCES).as_posix()
        for path in SOURCES.rglob("*.py")
        if re.search(r"\bSuiteSpec\.model_validate\(|\bfilled\(document|\bSuiteRecord\(", path.read_text())
    }
    assert readers == {f"suites/{name}.py" for name in ("document", "judge_requests", "load")} | {
        "features/parts/job.py"
    }
