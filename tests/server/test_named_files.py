"""What comes over HTTP names no file: it reads none, and none of its texts becomes a program."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from .live import Reply, send

TALK = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]
SECRET = "the secret of the server"


def assert_refused(reply: Reply, what: object) -> None:
    """Check that a job was refused for what it asks, and not for its form."""
    assert (reply.status, "discriminator" in reply.text) == (422, False), (what, reply.text)


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """Files of the server: a module that leaves a mark when it runs, and a text."""
    mark = tmp_path / "ran"
    (tmp_path / "own.py").write_text(f"open({str(mark)!r}, 'w')\ndef f(*args, **kwargs): return 'x'\n")
    (tmp_path / "secret.txt").write_text(SECRET)
    return tmp_path


def metrics(own: Path) -> list[dict[str, Any]]:
    """Return metrics that name the module, each in another way."""
    code = f"{own / 'own.py'}:f"
    options = {"extractor": code, "extractor_config": {"a": 1}}
    contains = {"metric": "contains", "config": options}
    return [
        contains,
        {"metric": "contains", "config": {"extractor": code}},
        {"metric": "contains", "extractor": code},
        {"metric": code},
        {"metric": "rule", "config": {"extractor": code}},
        {"metric": "exact_match", "config": options},
    ]


def test_a_metric_of_a_request_runs_no_file(server: str, own: Path) -> None:
    for metric in metrics(own):
        body = {"messages": TALK, "ground_truth": "x", "metrics": [metric]}
        assert send("POST", f"{server}/api/v1/evaluations", body).status == 422, metric
        job = {"kind": "evaluation", "conversations": [{"messages": TALK, "ground_truth": "x"}], "metrics": [metric]}
        assert_refused(send("POST", f"{server}/api/v1/jobs", job), metric)
    assert not (own / "ran").exists()


def test_a_test_of_a_request_runs_no_file(server: str, own: Path, workspace: Path) -> None:
    code = f"{own / 'own.py'}:f"
    for config in ({"extractor": code}, {"extractor_config": {"a": 1}}):
        test = {"kind": "test", "suite": "suites/refunds.yaml", "goal": "a refund"}
        reply = send("POST", f"{server}/api/v1/jobs", {**test, "metrics": [{"metric": "contains", "config": config}]})
        assert (reply.status, "belongs next to config" in reply.text) == (422, True), reply.text
    assert not (own / "ran").exists()


def test_an_assertion_of_a_request_runs_no_file(server: str, own: Path) -> None:
    code = f"{own / 'own.py'}:f"
    for assertion in (*metrics(own), {"contains": "x", "extractor": code}, {"python": code}, {"function": code}):
        conversation = {"messages": TALK, "ground_truth": "x", "expect": [assertion]}
        job = {"kind": "evaluation", "conversations": [conversation], "metrics": ["turn_count"]}
        assert_refused(send("POST", f"{server}/api/v1/jobs", job), assertion)
        assert send("POST", f"{server}/api/v1/evaluations", {**conversation, "metrics": ["turn_count"]}).status < 500
    assert not (own / "ran").exists()


@pytest.mark.parametrize("key", ["policy_path", "rubric_path"])
def test_a_row_of_a_request_reads_no_file(server: str, own: Path, key: str) -> None:
    path = str(own / "secret.txt")
    rows: list[dict[str, Any]] = [
        {key: path},
        {"test_configuration": {key: path}},
        {"test_configuration": {"goal": "g", key: path}},
        {"prompt": {key: path, "content": ""}},
        {"metadata": {key: path}, "test_configuration": {key: path}},
    ]
    for row in rows:
        job = {"kind": "evaluation", "conversations": [{"messages": TALK, **row}], "metrics": ["turn_count"]}
        reply = send("POST", f"{server}/api/v1/jobs", job)
        assert_refused(reply, row)
        assert SECRET not in reply.text


def test_a_row_of_a_request_does_not_tell_which_files_exist(server: str, own: Path) -> None:
    def answer(path: Path) -> int:
        job = {
            "kind": "evaluation",
            "conversations": [{"messages": TALK, "policy": str(path)}],
            "metrics": ["turn_count"],
        }
        return send("POST", f"{server}/api/v1/jobs", job).status

    (own / "there").write_text("x")
    assert answer(own / "there") == answer(own / "missing")
