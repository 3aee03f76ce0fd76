"""Keys that come back in answers, errors and crashes are not in the store, whichever way they took."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from vivavoce.errors import UsageError
from vivavoce.store.store import Store
from vivavoce.suites.experiment import reopen_run, run_suite
from vivavoce.suites.load import load_suite, stored_suite
from vivavoce.testing import misbehaviour
from vivavoce.testing.loopback import Answer, LoopbackServer

BOT_KEY, JUDGE_KEY, OTHER_KEY = "bot-key-0123456789", "judge-key-0123456789", "other-key-0123456789"
SHAPED = "sk-proj-0123456789abcdef"
SUITE = """\
name: keys
dataset: {rows: [{id: refused, input: "refuse"}, {id: told, input: "tell"}]}
target:
  kind: http
  url: %(bot)s/ask
  headers: {X-Bot: "Bearer ${BOT}"}
  body: {message: "{{ message }}"}
  max_retries: 0
graders:
  judged: {kind: model_judge, prompt: "Is it good? {submission}", model: "%(judge)s#m", api_key_env: JUDGE,
           max_retries: 0}
  own: {kind: tool, function: "own.py:grade", extractor: last_assistant}
"""
GRADER = """\
import os
from vivavoce import GradeResult

def grade(sample, submission):
    if "tell" in submission:
        return GradeResult(score=0.5, rationale=os.environ["OTHER_API_KEY"], metadata={"env": dict(os.environ)})
    raise RuntimeError(f"no answer with {os.environ}")
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder whose graders tell everything, and an environment with keys."""
    monkeypatch.setenv("BOT", BOT_KEY)
    monkeypatch.setenv("JUDGE", JUDGE_KEY)
    monkeypatch.setenv("OTHER_API_KEY", OTHER_KEY)
    (tmp_path / "own.py").write_text(GRADER)
    return tmp_path


def stored(folder: Path) -> bytes:
    """Return all bytes of the store, also those not yet in the file itself."""
    return b"".join(path.read_bytes() for path in folder.glob("x.db*"))


def test_no_key_of_a_run_is_in_its_store(folder: Path) -> None:
    with LoopbackServer() as bot, LoopbackServer() as judge:

        def echo(body: dict[str, Any]) -> Answer:
            told = json.dumps({"you sent": dict(bot.requests[-1].headers), "upstream": f"Bearer {SHAPED}"})
            return misbehaviour.status(401, told) if body["message"] == "refuse" else f"tell {told} {OTHER_KEY}"

        bot.answer = echo
        judge.answer = lambda body: misbehaviour.status(401, str(judge.requests[-1].headers))
        (folder / "keys.yaml").write_text(SUITE % {"bot": bot.url, "judge": judge.base_url})
        run_suite(folder / "keys.yaml", store=str(folder / "x.db"))
        assert bot.requests[0].headers["X-Bot"] == f"Bearer {BOT_KEY}"
        assert judge.requests[0].headers["Authorization"] == f"Bearer {JUDGE_KEY}"
    with Store.open(str(folder / "x.db")) as store:
        outcomes = {one.attempt.key.sample_id: one for one in store.outcomes(f"{store.run('latest').id}-g1")}
    refused = outcomes["refused"].attempt.trajectory.failure
    assert refused is not None
    assert "Bearer ***" in (refused.evidence or "")
    assert outcomes["told"].scores["own"].reason == "***"
    failed = outcomes["told"].scores["judged"].failure
    assert failed is not None
    assert "Bearer ***" in (failed.evidence or "")
    for key in (BOT_KEY, JUDGE_KEY, OTHER_KEY):
        assert key.encode() not in stored(folder)


def test_what_somebody_said_stays_although_it_looks_like_a_key(folder: Path) -> None:
    (folder / "bot.py").write_text(f"def reply(messages):\n    return 'your key is {SHAPED}'\n")
    suite = (
        "name: leak\ndataset: {rows: [{id: a, input: 'sk-live-0123456789abcdef is my key', ground_truth: x}]}\n"
        "target: {kind: function, function: 'bot.py:reply'}\n"
        "graders: {said: {kind: tool, function: contains, extractor: last_assistant}}\n"
    )
    (folder / "leak.yaml").write_text(suite)
    run_suite(folder / "leak.yaml", store=str(folder / "x.db"))
    with Store.open(str(folder / "x.db")) as store:
        (attempt,) = store.attempts(store.run("latest").id)
    assert [one.text for one in attempt.trajectory.messages] == [
        "sk-live-0123456789abcdef is my key",
        f"your key is {SHAPED}",
    ]


def test_a_key_in_a_request_is_not_stored_and_the_run_cannot_be_resumed_without_it(folder: Path) -> None:
    with LoopbackServer(lambda body: "tell") as bot, Store.open(str(folder / "x.db")) as store:
        text = SUITE.replace("body: {", f"body: {{key: {SHAPED}, ") % {"bot": bot.url, "judge": bot.base_url}
        (folder / "keys.yaml").write_text(text)
        run_suite(folder / "keys.yaml", store=str(folder / "x.db"))
        assert bot.requests[0].body["key"] == SHAPED
        run = store.run("latest")
        store.update_run(run.model_copy(update={"status": "interrupted"}))
        with pytest.raises(UsageError, match="its target contained a key, which is not stored"):
            reopen_run(run.id, store=store)
    assert SHAPED.encode() not in stored(folder)
    assert run.spec["target"]["headers"] == {"X-Bot": "Bearer ${BOT}"}


def test_a_suite_that_names_its_variables_can_be_resumed(folder: Path) -> None:
    with LoopbackServer(lambda body: "tell") as bot, Store.open(str(folder / "x.db")) as store:
        (folder / "keys.yaml").write_text(SUITE % {"bot": bot.url, "judge": bot.base_url})
        run_suite(folder / "keys.yaml", store=str(folder / "x.db"))
        run = store.run("latest")
        store.update_run(run.model_copy(update={"status": "interrupted"}))
        assert stored_suite(run).spec == load_suite(folder / "keys.yaml").spec
        reopen_run(run.id, store=store)
