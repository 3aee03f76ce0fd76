"""Each trial of a sample asks its judge for itself, and the next run answers each of them from the cache."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from vivavoce.models.cache import reply_key
from vivavoce.models.model import Request
from vivavoce.run.options import RunOptions
from vivavoce.suites.experiment import run_suite
from vivavoce.testing import LoopbackServer

SUITE = """\
name: trials
trials: 3
max_concurrent: 1
target: {{kind: function, function: "bot.py:reply"}}
dataset: {{rows: [{{id: a, input: hi, ground_truth: fine}}, {{id: b, input: hi, ground_truth: bad}}]}}
graders:
  g: {{kind: model_judge, model: "{model}", prompt: "Is {{{{ submission }}}} like {{{{ ground_truth }}}}?"{more}}}
"""


@pytest.fixture
def server() -> Iterator[LoopbackServer]:
    numbers = count(1)

    def answer(body: dict[str, Any]) -> dict[str, Any]:
        del body
        return {"reasoning": "r", "evidence": ["fine"], "score": next(numbers) % 2, "confidence": 0.9}

    with LoopbackServer(answer) as server:
        yield server


@pytest.mark.parametrize("more", ["", ", temperature: 0.7"])
def test_pass_hat_k_is_over_answers_that_were_given_one_by_one(
    more: str, server: LoopbackServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("bot.py").write_text("def reply(message):\n    return 'fine'\n")
    Path("suite.yaml").write_text(SUITE.format(model=f"{server.base_url}#judge", more=more))
    for _ in range(2):
        grader = run_suite("suite.yaml", RunOptions(), store="kept.db").summary.grader("g")
        assert len(server.requests) == 6
        assert [round(grader.pass_hat[k], 3) for k in (1, 2, 3)] == [0.5, 0.167, 0.0]


def test_votes_and_trials_have_keys_of_their_own_and_the_first_keeps_its_key() -> None:
    keys = [reply_key("m", {}, Request([], trial=vote, sample_trial=trial)) for vote in range(4) for trial in range(4)]
    assert len(set(keys)) == 16
    assert keys[0] == reply_key("m", {}, Request([]))
