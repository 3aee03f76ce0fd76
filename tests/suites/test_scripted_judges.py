"""The replies of scripted models are never cached: each script decides for itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from vivavoce import evaluate
from vivavoce.suites.experiment import run_suite
from vivavoce.testing import ScriptedModel

ROWS = [{"id": "a", "messages": [{"role": "user", "content": "Capital?"}, {"role": "assistant", "content": "Rome."}]}]
CRITIC = {"metric": "aspect_critic", "config": {"definition": "It names a city."}}
JUDGE = """\
from vivavoce.testing import ScriptedModel

reply = {{"reasoning": "r", "evidence": ["Rome."], "verdict": {verdict}, "confidence": 0.9}}
judge = ScriptedModel(lambda request: reply)
"""
SUITE = """\
name: scripted
driver: replay
dataset: {rows: [{id: a, messages: [{role: user, content: "Capital?"}, {role: assistant, content: "Rome."}]}]}
graders:
  city: {kind: metric, metric: aspect_critic, model: "judge.py:judge", config: {definition: It names a city.}}
"""


def _reply(verdict: bool) -> dict[str, Any]:
    return {"reasoning": str(verdict), "evidence": ["Rome."], "verdict": verdict, "confidence": 0.9}


def test_two_scripts_of_the_same_name_answer_the_same_question_each_for_itself(tmp_path: Path) -> None:
    for verdict in (False, True, False):
        model = ScriptedModel([_reply(verdict)])
        (outcome,) = evaluate(ROWS, [CRITIC], model=model, store=tmp_path / "kept.db").outcomes()
        assert (outcome.scores["aspect_critic"].value, len(model.requests)) == (float(verdict), 1)


def test_a_changed_script_of_a_suite_is_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("suite.yaml").write_text(SUITE)
    for verdict in (False, True):
        Path("judge.py").write_text(JUDGE.format(verdict=verdict))
        (outcome,) = run_suite("suite.yaml", store="kept.db").outcomes()
        assert outcome.scores["city"].value == float(verdict)
