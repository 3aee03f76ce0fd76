"""`viva show --exchange`: what a judge was asked, in the terminal."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from vivavoce.testing import LoopbackServer

from .conftest import Viva

SUITE = """\
name: judged
driver: replay
dataset:
  rows:
    - {id: talk, messages: [{role: user, content: hi}, {role: assistant, content: "hello \\e[2Jthere"}]}
graders:
  kind: {kind: model_judge, prompt: "Is it kind? {{ submission }}", model: "MODEL"}
"""


@pytest.fixture(autouse=True)
def _ran(viva: Viva, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with LoopbackServer(lambda body: {"reasoning": "so", "score": 1, "evidence": [], "confidence": 1}) as judge:
        Path("suite.yaml").write_text(SUITE.replace("MODEL", f"{judge.base_url}#judge"))
        done = viva("run", "suite.yaml")
    assert done.returncode == 0, done.stderr


def test_the_request_and_the_reply_are_printed(viva: Viva) -> None:
    done = viva("show", "latest", "talk", "--exchange", "kind")
    assert done.returncode == 0, done.stderr
    assert "── call 1 of 1, turn 1" in done.stdout
    assert 'Is it kind? "hello' in done.stdout
    assert "\x1b[2J" not in done.stdout
    assert '"reasoning": "so"' in done.stdout


def test_it_is_printed_as_json(viva: Viva) -> None:
    found = json.loads(viva("show", "latest", "talk", "--exchange", "kind", "--json").stdout)
    assert found["calls"][0]["parsed"]["reasoning"] == "so"


def test_what_is_asked_for_wrongly_is_a_mistake(viva: Viva) -> None:
    done = viva("show", "latest", "--exchange", "kind")
    assert (done.returncode, "shows one conversation" in done.stderr) == (2, True)
    done = viva("show", "latest", "talk", "--exchange", "kidn")
    assert (done.returncode, "did you mean 'kind'" in done.stderr) == (2, True)
