"""`viva run --dry-run`: the calls that a run would make, and what it would use as the run before it did."""

from __future__ import annotations

from pathlib import Path

import pytest

from .conftest import Viva

SUITE = """\
name: facts
driver: replay
dataset:
  rows:
    - {id: one, messages: [{role: user, content: hi}, {role: assistant, content: hello}]}
    - {id: two, messages: [{role: user, content: hi}, {role: assistant, content: hey}]}
graders:
  kind: {kind: model_judge, prompt: "Kind? {{ submission }}", model: "people.py:judge"CONFIRM}
"""
PEOPLE = """\
from vivavoce.models.model import ModelReply
from vivavoce.records.score import Usage
from vivavoce.testing import ScriptedModel

class Counted(ScriptedModel):
    async def complete(self, request):
        reply = await super().complete(request)
        usage = Usage(input_tokens=100, output_tokens=5, calls=1, cost=0.25)
        return ModelReply(reply.text, reply.parsed, reply.tool_calls, usage=usage)

judge = Counted(lambda _: {"score": 1, "reasoning": "kind", "evidence": [], "confidence": 1}, "judge")
"""


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("people.py").write_text(PEOPLE)
    Path("suite.yaml").write_text(SUITE.replace("CONFIRM", ""))


def test_the_use_is_that_of_the_run_before_for_as_many_conversations(viva: Viva) -> None:
    first = viva("run", "suite.yaml", "--dry-run")
    assert (first.returncode, len(first.stdout.splitlines())) == (0, 1)
    assert not Path(".vivavoce").exists()
    assert viva("run", "suite.yaml", "--quiet", "--max-samples", "1").returncode == 0
    told = viva("run", "suite.yaml", "--dry-run").stdout.splitlines()
    assert len(told) == 2
    assert told[1].startswith("as run facts-")
    assert told[1].endswith(": about judge 200 tokens in, 10 out, $0.50")


def test_verdicts_that_confirm_failures_are_at_most_so_many(viva: Viva) -> None:
    Path("suite.yaml").write_text(SUITE.replace("CONFIRM", ', confirm: {model: "people.py:judge"}'))
    told = viva("run", "suite.yaml", "--dry-run").stdout
    assert told == "2 recorded conversations, 2 turns; no target is called, at most 6 judge verdicts\n"


def test_trials_that_may_end_early_are_at_most_so_many(viva: Viva) -> None:
    Path("bot.py").write_text("def reply(message: str) -> str:\n    return message\n")
    head = 'name: a\ndataset: {rows: [{id: s, input: hi}]}\ntarget: {kind: function, function: "bot.py:reply"}\n'
    rest = "graders: {said: {kind: function, function: contains}}\ntrials: {max: 8, half_width: 0.1}\n"
    Path("early.yaml").write_text(head + rest)
    told = viva("run", "early.yaml", "--dry-run").stdout.splitlines()[0]
    assert told == (
        "1 sample × 1 target × at most 8 trials = at most 8 conversations; "
        "at most 8 messages to the target, 0 judge verdicts, 15 at a time"
    )
