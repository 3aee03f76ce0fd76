"""The answers of judges in a cassette: recorded once, and then nobody is asked."""

from __future__ import annotations

import json

import pytest

from vivavoce.testing import asserting as _loaded_once_and_not_in_each_call_of_pytest

_ = _loaded_once_and_not_in_each_call_of_pytest
pytest_plugins = ["pytester"]

JUDGE = """
from vivavoce.testing import ScriptedModel

def answer(request):
    with open("asked.txt", "a") as file:
        file.write("x")
    said = request.messages[-1].text
    return {"reasoning": "polite enough", "evidence": ["Hi"], "confidence": 1.0, "score": float("rude" not in said)}

model = ScriptedModel(answer, "judge of the file")
model.anonymous = False
"""
SUITE = """
name: polite
driver: replay
dataset:
  rows:
    - {id: a, messages: [{role: user, content: hi}, {role: assistant, content: WORDS}]}
graders:
  polite: {kind: model_judge, prompt: "Is it polite? {submission}", model: "judge.py:model"}
"""


@pytest.fixture(autouse=True)
def _only_this_plugin(monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("PYTEST_PLUGINS", "vivavoce.testing.plugin")


def write(pytester: pytest.Pytester, words: str) -> None:
    (pytester.path / "judge.py").write_text(JUDGE)
    (pytester.path / "polite.viva.yaml").write_text(SUITE.replace("WORDS", words))


def questions(pytester: pytest.Pytester) -> int:
    path = pytester.path / "asked.txt"
    return len(path.read_text()) if path.exists() else 0


CASSETTE = ("--viva", "--viva-cassette=judge.jsonl")


def test_what_is_recorded_is_replayed_and_nobody_is_asked(pytester: pytest.Pytester) -> None:
    write(pytester, "hello")
    result = pytester.runpytest_inprocess(*CASSETTE, "--viva-record")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["wrote judge.jsonl: answers of judges: 1"])
    assert questions(pytester) == 1
    head, *replies = (pytester.path / "judge.jsonl").read_text().splitlines()
    assert json.loads(head) == {"vivavoce_replies": 1}
    assert [json.loads(reply)["model"] for reply in replies] == ["judge of the file"]
    for path in (pytester.path / ".vivavoce").iterdir():
        path.unlink()
    pytester.runpytest_inprocess(*CASSETTE).assert_outcomes(passed=1)
    assert questions(pytester) == 1


def test_a_question_that_is_not_recorded_is_an_error_that_says_how_to(pytester: pytest.Pytester) -> None:
    write(pytester, "hello")
    pytester.runpytest_inprocess(*CASSETTE, "--viva-record")
    write(pytester, "another")
    result = pytester.runpytest_inprocess(*CASSETTE)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(
        ["could not be judged: *no recorded reply of judge of the file to *; judge.jsonl does not have it: record *"]
    )
    assert questions(pytester) == 1
    pytester.runpytest_inprocess(*CASSETTE, "--viva-record").assert_outcomes(passed=1)
    assert questions(pytester) == 2
    assert len((pytester.path / "judge.jsonl").read_text().splitlines()) == 3
    pytester.runpytest_inprocess(*CASSETTE).assert_outcomes(passed=1)


def test_without_the_file_nobody_is_asked_either(pytester: pytest.Pytester) -> None:
    write(pytester, "hello")
    pytester.makeini("[pytest]\nviva_cassette = judge.jsonl\n")
    result = pytester.runpytest_inprocess("--viva")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*there is no file *judge.jsonl: record it with pytest --viva-record*"])
    assert questions(pytester) == 0
    pytester.runpytest_inprocess("--viva", "--viva-record").assert_outcomes(passed=1)
    pytester.runpytest_inprocess("--viva").assert_outcomes(passed=1)


def test_a_file_that_is_no_cassette_is_said(pytester: pytest.Pytester) -> None:
    write(pytester, "hello")
    (pytester.path / "judge.jsonl").write_text('{"id": "a"}\n')
    result = pytester.runpytest_inprocess(*CASSETTE)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*judge.jsonl:1 is not a file of replies*"])


def test_assertions_are_recorded_by_every_worker(pytester: pytest.Pytester) -> None:
    write(pytester, "hello")
    pytester.makeini("[pytest]\nviva_cassette = judge.jsonl\nviva_judge = judge.py:model\n")
    pytester.makepyfile(
        """
import pytest
from vivavoce.messages import HumanMessage
from vivavoce.models.model import Request

@pytest.mark.parametrize("number", range(6))
async def test_it(viva_judge, number):
    asked = [HumanMessage(content=f"number {number}")]
    reply = await viva_judge.complete(Request(asked, schema={"type": "object", "title": "Answer"}))
    assert reply.parsed["score"]
"""
    )
    options = (
        "-p",
        "pytest_asyncio.plugin",
        "-o",
        "asyncio_mode=auto",
        "-o",
        "asyncio_default_fixture_loop_scope=function",
    )
    workers = ("-p", "xdist.plugin", "-n", "2")
    result = pytester.runpytest_subprocess(*options, *workers, "--viva-record")
    result.assert_outcomes(passed=6)
    result.stdout.fnmatch_lines(["wrote judge.jsonl: answers of judges: 6"])
    pytester.runpytest_inprocess(*options).assert_outcomes(passed=6)
    assert questions(pytester) == 6
