"""Python of the user that misbehaves: a record, whatever it does, and never a crash, a pass or a lost sample."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from vivavoce import run_suite
from vivavoce.errors import UsageError
from vivavoce.run.options import RunOptions
from vivavoce.run.summary import RunResult

SUITE: dict[str, Any] = {
    "name": "user code",
    "dataset": "d.jsonl",
    "target": {"kind": "function", "function": "bot.py:answer", "timeout": 5, "max_retries": 0},
    "graders": {"right": {"kind": "tool", "function": "contains"}},
    "gate": {"kind": "simple", "metric_key": "right", "value": 0.5},
    "max_concurrent": 4,
}
GOOD_BOT = "def answer(message):\n    return 'ok'\n"


@pytest.fixture(autouse=True)
def _files(tmp_path: Path) -> None:  # pyright: ignore[reportUnusedFunction]
    rows = [{"id": str(i), "input": f"ask {i}", "ground_truth": "ok"} for i in range(12)]
    (tmp_path / "d.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def run(bot: str = GOOD_BOT, options: RunOptions | None = None, **changed: Any) -> RunResult:
    Path("bot.py").write_text(bot)
    Path("suite.yaml").write_text(json.dumps({**SUITE, **changed}))
    return run_suite("suite.yaml", options)


def graded(code: str, **options: Any) -> RunResult:
    Path("mine.py").write_text(code)
    return run(graders={"right": {"kind": "tool", "function": "mine.py:grade", **options}})


def test_a_target_that_cancels_itself_is_an_error_of_each_sample() -> None:
    result = run("import asyncio\nasync def answer(message):\n    raise asyncio.CancelledError\n")
    right = result.summary.grader("right")
    assert (right.scored, right.errors, result.exit_code) == (0, 12, 3)


@pytest.mark.parametrize("body", ["raise asyncio.CancelledError", "sys.exit(0)"])
@pytest.mark.parametrize("kind", ["async def", "def"])
def test_a_grader_that_ends_things_ends_nothing(kind: str, body: str) -> None:
    result = graded(f"import asyncio, sys\n{kind} grade(sample, submission):\n    {body}\n")
    right = result.summary.grader("right")
    assert (right.scored, right.errors, result.exit_code) == (0, 12, 3)


def test_a_file_that_ends_the_program_on_import_is_refused() -> None:
    with pytest.raises(UsageError, match=r"bot\.py:2 raises SystemExit on import"):
        run("import sys\nsys.exit(0)\n")


def test_a_hanging_grader_holds_up_nobody_and_ends_at_its_limit() -> None:
    code = (
        "import time\ndef grade(sample, submission):\n    if sample.id != '11':\n        time.sleep(30)\n    return 1\n"
    )
    started = time.monotonic()
    result = graded(code, timeout=0.5)
    assert time.monotonic() - started < 20
    right = result.summary.grader("right")
    assert (right.scored, right.errors) == (1, 11)


def test_a_grader_that_raises_a_timeout_of_its_own_keeps_its_words() -> None:
    result = graded("def grade(sample, submission):\n    raise TimeoutError('database gone')\n")
    grade = next(result.outcomes()).scores["right"]
    assert grade.failure is not None
    assert "database gone" in grade.failure.message
    assert "mine.py" in (grade.failure.evidence or ""), "the traceback is the evidence"


def test_metadata_that_json_cannot_hold_is_an_error_of_that_grade() -> None:
    code = (
        "def grade(sample, submission):\n    loop = {}\n    loop['self'] = loop\n"
        "    return {'score': 1, 'metadata': loop if sample.id == '3' else {'fine': 1}}\n"
    )
    right = graded(code).summary.grader("right")
    assert (right.scored, right.errors) == (11, 1)


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("def grade(submission): ...", "grade: too many positional arguments"),
        ("def grade(sample, submission, other): ...", "grade: missing a required argument: 'other'"),
    ],
)
def test_a_grader_that_cannot_be_called_is_told_before_anything_runs(code: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        graded(code)


def test_a_search_that_would_never_end_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vivavoce.safe_regex.SECONDS", 0.2)
    bot = "def answer(message):\n    return 'a' * 60 + '!'\n"
    rows = [{"id": str(i), "input": "x", "ground_truth": "^(a|aa)+$"} for i in range(2)]
    Path("d.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    result = run(bot, graders={"right": {"kind": "tool", "function": "regex_match"}})
    right = result.summary.grader("right")
    assert (right.scored, right.errors) == (0, 2)
    failure = next(result.outcomes()).scores["right"].failure
    assert failure is not None
    assert failure.kind == "timeout"


def test_half_a_surrogate_pair_in_a_row_is_kept() -> None:
    Path("d.jsonl").write_text(
        '{"id": "a", "input": "x", "ground_truth": "ok", "metadata": {"note": "half \\ud83d"}}\n'
    )
    result = run()
    assert result.summary.grader("right").scored == 1
    assert "\\ud83d" in next(result.outcomes()).attempt.sample


def test_calls_of_a_budget_are_spent_on_whole_conversations_only() -> None:
    rows = [{"id": str(i), "input": ["a", "b", "c"], "ground_truth": ["ok"] * 3} for i in range(12)]
    Path("d.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    bot = "CALLS = []\nasync def answer(message):\n    CALLS.append(1)\n    return 'ok'\n"
    result = run(bot, options=RunOptions(max_calls=10))
    assert result.stopped_by == "the limit of 10 calls is reached"
    assert result.summary.attempts == 3


def test_a_function_of_python_can_be_the_target() -> None:
    Path("suite.yaml").write_text(json.dumps(SUITE))

    def answer(message: str) -> str:
        return "ok"

    result = run_suite("suite.yaml", target=answer)
    assert result.summary.grader("right").mean == 1.0
    Path("bot.py").write_text(GOOD_BOT)
    assert run_suite("suite.yaml", target="bot.py:answer").exit_code == 0
