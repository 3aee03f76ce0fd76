"""What a driver writes down of a conversation."""

from __future__ import annotations

from pathlib import Path

import pytest

from vivavoce import run_suite
from vivavoce.messages import SystemMessage
from vivavoce.settings import settings
from vivavoce.store.store import Store
from vivavoce.testing import LoopbackServer, misbehaviour

SUITE = """\
name: prompted
dataset: d.jsonl
target:
  kind: openai
  base_url: {url}
  model_handles: [small]
  system_prompt: Be brief.
  max_retries: 0
graders:
  says: {{kind: tool, function: contains}}
"""


@pytest.mark.parametrize("fails", [False, True])
def test_the_system_prompt_of_a_target_opens_the_transcript(fails: bool) -> None:
    with LoopbackServer(lambda body: misbehaviour.server_error() if fails else "b") as server:
        Path("suite.yaml").write_text(SUITE.format(url=server.base_url))
        Path("d.jsonl").write_text('{"input": ["a", "b"], "ground_truth": "b"}\n')
        grading = run_suite("suite.yaml").grading
        asked = [[message["role"] for message in request.body["messages"]] for request in server.requests]
    with Store.open(settings().store) as store:
        [outcome] = store.outcomes(grading.id)
    trajectory = outcome.attempt.trajectory
    assert trajectory.opening == [SystemMessage(content="Be brief.")]
    assert len(trajectory.turns) == (1 if fails else 2)
    assert asked[-1] == (["system", "user"] if fails else ["system", "user", "assistant", "user"])
