"""Loading what a user's file holds: each mistake is where its maker can fix it."""

from __future__ import annotations

import importlib
import os
import sys
from pathlib import Path

import pytest

from vivavoce import run_suite
from vivavoce.errors import Problem, UsageError
from vivavoce.grading.extractors import extractors
from vivavoce.metrics.factory import metrics
from vivavoce.penelope.strategies.factory import strategies
from vivavoce.plugins import load_object


def problem_of(reference: str, base: Path) -> Problem:
    with pytest.raises(UsageError) as caught:
        load_object(reference, base)
    [problem] = caught.value.problems
    return problem


def test_a_wrong_reference_has_no_place_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "bot.py").write_text("def answer(message): ...\n")
    assert problem_of("bot.py:anwser", tmp_path) == Problem("bot.py has no 'anwser'; did you mean 'answer'?")
    assert problem_of("absent.py:f", tmp_path).file is None
    assert problem_of("bot:answer", tmp_path) == Problem("'bot:answer' does not have the form file.py:name")


def test_a_file_that_raises_is_the_place(tmp_path: Path) -> None:
    (tmp_path / "bot.py").write_text("import os\n\nraise OSError('no model')\n")
    assert problem_of("bot.py:f", tmp_path) == Problem(
        "raises OSError on import: no model", (tmp_path / "bot.py").resolve(), 3
    )


@pytest.mark.parametrize("line", ["from letta_evals.runner import Runner", "from letta_evals import Runner"])
def test_a_file_that_needs_more_of_letta_evals_is_told_to_install_it(line: str, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(f"\n{line}\n")
    problem = problem_of("mine.py:f", tmp_path)
    assert problem.line == 2
    assert problem.message.endswith("only what a suite's files need is here: install letta-evals for the rest")


def test_names_of_letta_evals_are_there_only_while_a_file_is_executed(tmp_path: Path) -> None:
    (tmp_path / "parts.py").write_text("from letta_evals.models import GradeResult\n")
    (tmp_path / "mine.py").write_text(
        "import letta_evals.decorators\nfrom letta_evals import grader\nfrom parts import GradeResult\n"
        "@grader\ndef good(sample, submission) -> GradeResult:\n    return GradeResult(score=1.0)\n"
    )
    assert load_object("mine.py:good", tmp_path)(None, "x").score == 1.0
    assert [name for name in sys.modules if name.partition(".")[0] == "letta_evals"] == []
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("letta_evals")


def test_a_decorator_of_letta_evals_says_which_parameters_it_takes(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "from letta_evals.decorators import grader\n@grader\ndef good(row, answer): ...\n"
    )
    assert "good takes (row, answer); letta-evals calls it with (sample, submission)" in str(
        problem_of("mine.py:good", tmp_path)
    )


def test_a_package_that_is_installed_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "installed/letta_evals").mkdir(parents=True)
    (tmp_path / "installed/letta_evals/__init__.py").write_text("NAME = 'theirs'\n")
    monkeypatch.setattr(sys, "path", [str(tmp_path / "installed"), *sys.path])
    (tmp_path / "mine.py").write_text("from letta_evals import NAME\n")
    try:
        assert load_object("mine.py:NAME", tmp_path) == "theirs"
    finally:
        sys.modules.pop("letta_evals", None)


def test_names_that_the_client_of_letta_had_first_are_answered_while_a_file_is_executed(tmp_path: Path) -> None:
    letta_client = pytest.importorskip("letta_client")
    (tmp_path / "mine.py").write_text(
        "from letta_client import AsyncLetta, CreateBlock, LettaMessageUnion, MessageCreate, ToolCallMessage\n"
        "from letta_client.client import BaseTool\nblock = CreateBlock(label='a', value='b')\n"
    )
    assert load_object("mine.py:block", tmp_path) == {"label": "a", "value": "b"}
    assert load_object("mine.py:ToolCallMessage", tmp_path) is letta_client.types.agents.ToolCallMessage
    assert not hasattr(letta_client, "CreateBlock")
    assert not hasattr(letta_client, "client")


def test_a_name_that_the_client_of_letta_never_had_is_an_error(tmp_path: Path) -> None:
    pytest.importorskip("letta_client")
    (tmp_path / "mine.py").write_text("from letta_client import CreateBlok\n")
    assert "cannot import name 'CreateBlok' from 'letta_client'" in problem_of("mine.py:f", tmp_path).message


def test_each_file_imports_its_own_neighbours(tmp_path: Path) -> None:
    for name in ("a", "b"):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "neighbour_of_a_bot.py").write_text(f"NAME = {name!r}\n")
        (folder / "bot.py").write_text("from neighbour_of_a_bot import NAME\n")
    assert [load_object(f"{name}/bot.py:NAME", tmp_path) for name in ("a", "b", "a")] == ["a", "b", "a"]


def test_a_neighbour_that_changed_is_imported_again(tmp_path: Path) -> None:
    (tmp_path / "neighbour_that_changes.py").write_text("NAME = 'a'\n")
    (tmp_path / "bot.py").write_text("from neighbour_that_changes import NAME\n")
    assert load_object("bot.py:NAME", tmp_path) == "a"
    (tmp_path / "neighbour_that_changes.py").write_text("NAME = 'changed'\n")
    assert load_object("bot.py:NAME", tmp_path) == "changed"


def test_a_change_of_equal_length_within_a_second_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    (tmp_path / "ours").mkdir()
    files = [tmp_path / name for name in ("bot.py", "words.py", "ours/words.py")]
    for number, moment in ((1, 1_000_000_000_100_000_000), (2, 1_000_000_000_600_000_000)):
        files[0].write_text(f"import ours.words\nimport words\nsaid = ({number}, words.said, ours.words.said)")
        for file in files[1:]:
            file.write_text(f"said = {number}")
        for file in files:
            os.utime(file, ns=(moment, moment))
        assert load_object("bot.py:said", tmp_path) == (number,) * 3


def test_the_path_of_the_program_stays_as_it_is(tmp_path: Path) -> None:
    before = list(sys.path)
    (tmp_path / "beside_a_bot.py").write_text("")
    (tmp_path / "bot.py").write_text("import beside_a_bot\n")
    load_object("bot.py:beside_a_bot", tmp_path)
    assert sys.path == before


def test_a_neighbour_does_not_hide_what_is_installed(tmp_path: Path) -> None:
    (tmp_path / "tabnanny.py").write_text("")
    (tmp_path / "bot.py").write_text("import tabnanny\n")
    assert load_object("bot.py:tabnanny", tmp_path).__file__ != str(tmp_path / "tabnanny.py")


def install(folder: Path, package: str, entry_points: str, code: str = "") -> None:
    """Put a package into a folder as an installer leaves it there."""
    (folder / f"{package}.py").write_text(code)
    known = folder / f"{package}-1.0.dist-info"
    known.mkdir()
    (known / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    (known / "entry_points.txt").write_text(entry_points)


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of installed packages; what is loaded from there is forgotten at the end."""
    for registry in (metrics, extractors, strategies):
        monkeypatch.setattr(registry, "_added", dict(vars(registry)["_added"]))
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.setattr(sys, "path", [str(folder), *sys.path])
    return folder


GREETINGS = """\
from vivavoce import grader
from vivavoce.penelope.strategies.free import Improvise


def greets(sample, submission):
    return "hello" in submission.lower()


def first_word(trajectory, config):
    return trajectory[0][-1].text.split()[0]


class Shout(Improvise):
    pass
"""
POINTS = """\
[vivavoce.graders]
greets = greetings:greets
[vivavoce.extractors]
first_word = greetings:first_word
[vivavoce.strategies]
shout = greetings:Shout
"""


def test_a_package_adds_what_its_entry_points_name(packages: Path, tmp_path: Path) -> None:
    install(packages, "greetings", POINTS, GREETINGS)
    assert {"greets", "contains"} <= set(metrics.names())
    assert strategies.get("shout").__name__ == "Shout"
    (tmp_path / "bot.py").write_text("def reply(message):\n    return 'Hello there'\n")
    (tmp_path / "suite.yaml").write_text(
        "name: s\ndataset: {rows: [{id: a, input: hi}]}\ntarget: {kind: function, function: 'bot.py:reply'}\n"
        "graders: {polite: {kind: function, function: greets, extractor: first_word}}\n"
    )
    (outcome,) = run_suite(tmp_path / "suite.yaml", store=str(tmp_path / "x.db")).outcomes()
    assert (outcome.scores["polite"].value, outcome.scores["polite"].submission) == (1.0, "Hello")


def test_a_package_replaces_nothing_that_is_built_in(packages: Path) -> None:
    install(packages, "greedy", "[vivavoce.graders]\ncontains = greedy:contains\n", "contains = None\n")
    assert "greedy" not in repr(metrics.get("contains"))


def test_two_packages_with_one_name_are_named(packages: Path) -> None:
    for package in ("one", "other"):
        install(packages, package, f"[vivavoce.extractors]\ntwice = {package}:twice\n", "def twice(view): ...\n")
    assert "twice" in extractors.names()
    with pytest.raises(UsageError, match="one and other both name the extractor 'twice'; uninstall one of them"):
        extractors.get("twice")
