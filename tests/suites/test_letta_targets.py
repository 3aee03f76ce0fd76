"""Targets of letta-evals under our keys: models, folders, and what beside them is about agents."""

from __future__ import annotations

from pathlib import Path

import pytest

from vivavoce.errors import UsageError
from vivavoce.suites.check import check_suite
from vivavoce.suites.load import Suite, load_suite
from vivavoce.suites.target_spec import LettaCodeTargetSpec, LettaTargetSpec
from vivavoce.targets.letta_code import LettaCodeOptions

SUITE = """\
name: s
dataset: d.jsonl
target: {target}
graders: {{right: {{kind: tool, function: contains}}}}
gate: {{kind: simple, metric_key: right, op: gte, value: 1}}
"""


def read(folder: Path, target: str) -> Suite:
    (folder / "suite.yaml").write_text(SUITE.format(target=target))
    return load_suite(folder / "suite.yaml")


def test_names_of_files_of_theirs_are_handles(tmp_path: Path) -> None:
    names = "openai-gpt-5-mini, together-kimi-k2, openai-gpt-5.2-codex-xhigh"
    suite = read(tmp_path, f"{{kind: letta_agent, agent_id: a, model_configs: [{names}]}}")
    assert isinstance(suite.spec.target, LettaTargetSpec)
    kimi = "together/moonshotai/Kimi-K2-Instruct-0905"
    assert suite.spec.target.model_handles == ["openai/gpt-5-mini", kimi, "openai/gpt-5.2-codex"]
    assert any("the context window and reasoning effort" in note for note in suite.notes)
    assert not suite.problems


def test_a_name_of_a_file_that_is_not_theirs_is_refused(tmp_path: Path) -> None:
    suite = read(tmp_path, "{kind: letta_agent, agent_id: a, model_configs: [openai-gpt-4.1, together-kimi-k3]}")
    (problem,) = suite.problems
    assert problem.line == 3
    assert "no known file of letta-evals: 'together-kimi-k3'; did you mean 'together-kimi-k2'?" in problem.message


def test_a_model_that_is_listed_twice_is_run_once(tmp_path: Path) -> None:
    suite = read(tmp_path, "{kind: letta_code, model_handles: [a/b, c/d, a/b]}")
    assert isinstance(suite.spec.target, LettaCodeTargetSpec)
    assert suite.spec.target.model_handles == ["a/b", "c/d"]
    assert any("lists a model more than once" in note for note in suite.notes)


@pytest.mark.parametrize(
    ("target", "folder"),
    [
        ("working_dir: out", "out"),
        ("working_dir: out, model_handles: [a/b]", "out"),
        ("working_dir: out, model_handles: [a/b, c/d]", "out/{model}"),
        ("working_dir: out, model_handles: [a/b, c/d], sandbox: false", "out"),
        ("working_dir: out, sandbox: true", "out/{model}"),
        ("sandbox: true", None),
    ],
)
def test_each_model_has_a_folder_of_its_own_where_letta_evals_made_one(
    tmp_path: Path, target: str, folder: str | None
) -> None:
    suite = read(tmp_path, f"{{kind: letta_code, {target}}}")
    assert isinstance(suite.spec.target, LettaCodeTargetSpec)
    assert suite.spec.target.working_dir == folder


def test_skills_are_a_flag_whose_path_starts_at_the_suite(tmp_path: Path) -> None:
    suite = read(tmp_path, "{kind: letta_code, flags: --memfs, skills_dir: my skills, working_dir: out}")
    assert isinstance(suite.spec.target, LettaCodeTargetSpec)
    assert suite.spec.target.flags == "--memfs --skills 'my skills'"
    options = LettaCodeOptions(flags=suite.spec.target.flags, directory=tmp_path, working_dir="out/{model}")
    assert options.arguments("a/b", None)[-3:] == ["--memfs", "--skills", str(tmp_path.resolve() / "my skills")]
    assert options.folder("openai/gpt-5") == tmp_path / "out/gpt-5"


@pytest.mark.parametrize("key", ["allowed_tools", "disallowed_tools"])
def test_what_letta_evals_never_sent_is_left_out_and_noted(tmp_path: Path, key: str) -> None:
    suite = read(tmp_path, f"{{kind: letta_code, {key}: [Bash]}}")
    assert any(f"target.{key}: is ignored: the command line has no such option" in note for note in suite.notes)


@pytest.mark.parametrize(
    ("backend", "problems"),
    [("", []), (", backend: local", ["set-up setup.py:begin takes a client, but only"])],
)
def test_a_set_up_may_take_the_client_and_the_model_by_its_first_name(
    tmp_path: Path, backend: str, problems: list[str]
) -> None:
    (tmp_path / "setup.py").write_text("def begin(client, model_name): ...\n")
    (tmp_path / "d.jsonl").write_text('{"input": "hi", "ground_truth": "hi"}\n')
    suite = read(tmp_path, f"{{kind: letta_code{backend}}}\nsetup_script: setup.py:begin")
    texts: list[str] = []
    try:
        check_suite(suite)
    except UsageError as error:
        texts = [problem.message for problem in error.problems]
    assert len(texts) == len(problems)
    assert all(problem in message for problem, message in zip(problems, texts, strict=True))


def test_a_sandbox_is_refused_unless_another_target_takes_the_place_of_the_agent(tmp_path: Path) -> None:
    read(tmp_path, "{kind: letta_code}")
    path = tmp_path / "suite.yaml"
    path.write_text(path.read_text() + "sandbox: {kind: modal}\n")
    assert ["sandbox: asks for a Modal sandbox" in problem.message for problem in load_suite(path).problems] == [True]
    suite = load_suite(path, [{"kind": "function", "function": "bot.py:reply"}])
    assert not suite.problems
    assert any("sandbox: is ignored: it is for the suite's own target" in note for note in suite.notes)
