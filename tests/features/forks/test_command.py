from __future__ import annotations

import json
from pathlib import Path

import pytest

from command_line import Viva

SUITE = """
name: asked
dataset: {rows: [{id: a, input: [x, y, z], ground_truth: "yes"}, {id: fine, input: [x, y], ground_truth: "no"}]}
target: {kind: function, function: "bot.py:bad"}
graders: {right: {kind: function, function: contains, extractor: last_assistant}}
"""
BOT = """
def bad(messages):
    return 'no' if len(messages) > 2 else 'yes'
def good(messages):
    return 'no' if any(one['content'] == 'no' for one in messages) else 'yes'
"""


@pytest.fixture(autouse=True)
def _ran(viva: Viva) -> None:
    Path("bot.py").write_text(BOT)
    Path("suite.yaml").write_text(SUITE)
    assert viva("run", "suite.yaml", "--quiet").returncode == 0


def test_the_turn_is_named_shown_and_listed(viva: Viva) -> None:
    done = viva("fork", "latest/a", "--target", "bot.py:good", "--quiet")
    assert done.returncode == 0
    assert "the success rate dropped at turn 2: before it," in done.stdout
    assert "original          failed" in done.stdout
    output = viva("show", "latest").stdout
    assert "the success rate dropped at turn 2" in output
    assert "it cannot be a baseline or a point of a trend" in output
    assert "from each turn, with bot.good" in viva("runs").stdout
    assert "from each turn, with bot.good: viva show asked-" in viva("show", "latest~1", "a").stdout


def test_json_has_the_same(viva: Viva) -> None:
    done = viva("fork", "latest/a", "--turn", "2", "--trials", "2", "--json", "--quiet")
    data = json.loads(done.stdout)
    assert (data["answer"], data["fork"]["turn"], data["places"][0]["failed"]) == ("one_turn", 1, 2)


def test_a_search_that_finds_nothing_ends_with_3(viva: Viva) -> None:
    done = viva("fork", "latest/a", "--target", "bot.py:good", "--trials", "3", "--quiet")
    assert done.returncode == 3
    assert "no turn stands out after 3 replays" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["latest"], "write RUN/SAMPLE"),
        (["latest/b"], "no sample 'b'"),
        (["latest/a", "--turn", "4"], "--turn 4 does not exist; asked-"),
        (["latest/a", "--turn", "2", "--user", "u", "--assistant", "a"], "cannot be combined"),
        (["latest/a", "--user", "u"], "--user needs --turn"),
        (["latest/a", "--turn", "2", "--assistant", " "], "--assistant is empty"),
        (["latest/a", "--suite", "no.yaml"], "no.yaml: there is no such file"),
        (["latest/a", "--target", "other"], "must be file.py:function"),
        (["latest/fine"], "did not fail 'right'"),
    ],
)
def test_mistakes_are_one_line(viva: Viva, arguments: list[str], complaint: str) -> None:
    done = viva("fork", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert complaint in done.stderr
    assert "Traceback" not in done.stderr
