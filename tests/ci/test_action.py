"""The composite action: every step runs in bash, as a runner of GitHub would run it; only pip and gh are stand-ins."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ci.runner import EXPRESSION, ROOT, Build, Runner, read_yaml, stem
from forked import program
from vivavoce.testing import LoopbackServer

ACTION = ROOT / "action.yml"

BOT = """\
def reply(message):
    return "We open at nine." if "open" in message else "You get your money back."
"""
SPOILT = BOT.replace("You get your money back.", "::error::I am sorry.")
SUITE = """\
name: {name}
dataset:
  rows:
    - {{id: hours, input: "When do you open?", expect: {{contains: nine}}}}
    - {{id: refund, input: "I want my money back", expect: {{contains: money back}}}}
target: {{kind: function, function: "bot.py:reply"}}
"""
JUDGED = """\
name: judged
dataset: {{rows: [{{id: hours, input: "When do you open?"}}]}}
target: {{kind: function, function: "bot.py:reply"}}
graders:
  friendly: {{kind: model_judge, model: "{judge}#judge", prompt: "Is it friendly?"}}
gate: {{kind: simple, metric_key: friendly, value: 0.5}}
"""
GH = """\
#!/usr/bin/env python3
import json, os, sys
from pathlib import Path

place = Path(__file__).parent / "comments.json"
comments = json.loads(place.read_text())
arguments = sys.argv[1:]
assert arguments.pop(0) == "api" and os.environ["GH_TOKEN"] == "secret", arguments
if (Path(__file__).parent / "forbidden").exists():
    sys.exit("HTTP 403: Resource not accessible by integration")
if "--jq" in arguments:
    marker = arguments[arguments.index("--jq") + 1].split('startswith("')[1].split('"')[0]
    print("\\n".join(str(c["id"]) for c in comments if c["user"] == "Bot" and c["body"].startswith(marker)))
else:
    method, path = arguments[arguments.index("--method") + 1], arguments[arguments.index("--method") + 2]
    body = Path(arguments[arguments.index("--field") + 1].removeprefix("body=@")).read_text()
    if method == "POST":
        assert path == "repos/me/shop/issues/7/comments", path
        comments.append({"id": 100 + len(comments), "user": "Bot", "body": body})
    else:
        [one] = [c for c in comments if path == f"repos/me/shop/issues/comments/{c['id']}"]
        one["body"] = body
    place.write_text(json.dumps(comments))
"""
PULL = {"base_ref": "main", "repository": "me/shop", "event__pull_request__number": "7"}
COMMENT = {"comment": "true", "token": "secret"}


@pytest.fixture
def runner(tmp_path: Path) -> Runner:
    """A repository with a suite, on a machine with a stand-in for `gh` and for pip."""
    folder, machine = tmp_path / "repository", tmp_path / "machine"
    programs = machine / "bin"
    programs.mkdir(parents=True)
    folder.mkdir()
    (folder / "bot.py").write_text(BOT)
    (folder / "suite.yaml").write_text(SUITE.format(name="shop"))
    (programs / "gh").write_text(GH)
    (programs / "comments.json").write_text(json.dumps([{"id": 1, "user": "User", "body": "<!-- vivavoce: viva -->"}]))
    (programs / "python").write_text('#!/bin/sh\nprintf "%s\\n" "$@" > "$(dirname "$0")/installed"\n')
    for name in ("gh", "python"):
        (programs / name).chmod(0o755)
    return Runner(ACTION, folder, machine, [program("viva").parent])


def checkout(runner: Runner) -> None:
    """Leave nothing of the build before, as a new runner does."""
    shutil.rmtree(runner.folder / ".viva-ci", ignore_errors=True)


def push(runner: Runner, **inputs: str) -> Build:
    checkout(runner)
    return runner.run("push", inputs=inputs, ref_name="main")


def pull(runner: Runner, **inputs: str) -> Build:
    checkout(runner)
    return runner.run("pull_request", inputs=inputs, **PULL)


def comments(runner: Runner) -> list[str]:
    kept = json.loads((runner.machine / "bin" / "comments.json").read_text())
    assert kept[0]["body"] == "<!-- vivavoce: viva -->", "what a person wrote stays"
    return [one["body"] for one in kept[1:]]


def test_a_build_whose_suite_passes_has_a_summary_and_reports(runner: Runner) -> None:
    build = push(runner, install="-r requirements.txt openai", extras="frames,providers")
    assert build.code == 0, build.log
    assert "`shop`" in build.summary
    kept = {path.name for path in (runner.folder / ".viva-ci").iterdir()}
    assert {f"{stem('suite.yaml')}.html", f"{stem('suite.yaml')}.xml", "report.md", ".gitignore"} <= kept
    assert "Comment" not in build.steps
    assert "Keep the runs for pull requests" not in build.steps
    installed = (runner.machine / "bin" / "installed").read_text().split("\n")[:-1]
    source = f"{ROOT}[frames,providers]"
    assert installed == ["-m", "pip", "install", "--quiet", source, "-r", "requirements.txt", "openai"]


def test_a_mistake_in_a_suite_is_an_annotation_at_its_line(runner: Runner) -> None:
    text = SUITE.format(name="shop").replace("dataset:", "dataest:", 1)
    (runner.folder / "suite.yaml").write_text(text)
    build = push(runner)
    assert (build.code, build.steps[-1]) == (2, "Check the suites")
    assert re.search(r"^::error file=suite\.yaml,line=2,col=1::.*did you mean 'dataset'", build.log, re.MULTILINE)


def test_a_suite_that_is_not_there_ends_the_build(runner: Runner) -> None:
    build = push(runner, suites="evals/*.yaml")
    assert (build.code, build.steps[-1], "evals/*.yaml" in build.log) == (2, "Check the suites", True)


def test_of_several_suites_one_failure_fails_the_build_after_its_reports_with_annotations(runner: Runner) -> None:
    (runner.folder / "evals").mkdir()
    bad = SUITE.format(name="bad").replace("bot.py", "bad.py")
    (runner.folder / "evals" / "bad.viva.yaml").write_text(bad)
    (runner.folder / "evals" / "bad.py").write_text(SPOILT)
    build = push(runner, suites="evals/*.viva.yaml\nsuite.yaml", args="--trials 2\n--max-calls 100")
    assert (build.code, build.steps[-1]) == (1, "Verdict"), build.log
    annotation, *_ = [line for line in build.log.splitlines() if line.startswith("::error title=bad%3A refund")]
    assert "does not contain 'money back'" in annotation
    assert not any(line.startswith("::error::I am sorry.") for line in build.log.splitlines())
    assert "`bad`" in build.summary
    assert "`shop`" in build.summary
    stores = {path.name for path in (runner.folder / ".viva-ci" / "runs").glob("*.db")}
    assert stores == {f"{stem('evals/bad.viva.yaml')}.db", f"{stem('suite.yaml')}.db"}


def test_suites_with_like_and_hostile_paths_are_told_apart_and_run_once(runner: Runner) -> None:
    (runner.folder / "evals").mkdir()
    hostile = 'my "suite" $(touch owned); `touch owned`, 5%.viva.yaml'
    paths = ["evals/a.viva.yaml", "evals-a.viva.yaml", "--help.viva.yaml", hostile]
    for number, path in enumerate(paths):
        (runner.folder / path).write_text(SUITE.format(name=f"shop{number}"))
    (runner.folder / "evals" / "bot.py").write_text(SPOILT)
    build = push(
        runner, suites="*.viva.yaml evals/a.viva.yaml evals/*.yaml", args="$(touch owned)", name="$(touch owned)"
    )
    assert (build.code, build.steps[-1]) == (2, "Verdict"), build.log
    build = push(runner, suites="*.viva.yaml evals/a.viva.yaml evals/*.yaml")
    assert (build.code, build.steps[-1]) == (1, "Verdict"), build.log
    stores = {path.name for path in (runner.folder / ".viva-ci" / "runs").glob("*.db")}
    assert stores == {f"{stem(path)}.db" for path in paths}
    assert [build.summary.count(f"`shop{number}`") > 0 for number in range(4)] == [True] * 4
    assert build.log.count("show a conversation") + build.log.count("show the worst") == 4
    assert not (runner.folder / "owned").exists()
    (runner.folder / hostile).write_text(SUITE.format(name="shop").replace("dataset:", "dataest 5%:", 1))
    log = push(runner, suites="*.viva.yaml").log
    assert f"::error::{hostile.replace('%', '%25')}:2:1 dataest 5%25: unknown key" in log


def test_a_suite_that_cannot_run_fails_the_build_and_the_others_are_reported(runner: Runner) -> None:
    bot, model = (
        '{kind: function, function: "bot.py:reply"}',
        "{kind: openai, base_url: 'https://192.0.2.1/v1', model_handles: [m], api_key_env: NO_SUCH_KEY}",
    )
    assert bot in SUITE.format(name="keyless")
    (runner.folder / "z.yaml").write_text(SUITE.format(name="keyless").replace(bot, model))
    build = push(runner, suites="suite.yaml z.yaml")
    assert (build.code, build.steps[-1], "NO_SUCH_KEY" in build.log) == (2, "Verdict", True), build.log
    assert "`shop`" in build.summary
    assert "Keep the answers of judges" in build.steps


def test_the_comment_compares_with_the_main_branch_and_there_is_only_one(runner: Runner) -> None:
    first = pull(runner, **COMMENT, args="--max-calls 1")
    assert first.code == 3, first.log
    [alone] = comments(runner)
    assert "after run" not in alone
    assert "Keep the runs for pull requests" in push(runner, **COMMENT).steps
    (runner.folder / "bot.py").write_text(SPOILT)
    assert pull(runner, **COMMENT).code == 1
    [compared] = comments(runner)
    assert compared.startswith("<!-- vivavoce: viva -->\n")
    assert "after run" in compared
    assert "`refund`" in compared
    wrong = pull(runner, **COMMENT, args="--trails 3")
    assert (wrong.code, wrong.steps[-1], comments(runner)) == (2, "Run the suites", [compared])
    (runner.machine / "bin" / "forbidden").touch()
    forbidden = pull(runner, **COMMENT, name="nightly")
    assert forbidden.code == 1
    assert "::warning::the comments of the pull request cannot be read" in forbidden.log


@pytest.fixture
def judge(runner: Runner) -> Iterator[LoopbackServer]:
    """A judge on this machine, and a suite that asks it."""
    with LoopbackServer(
        lambda _: {"reasoning": "It is.", "evidence": ["When do you open?"], "score": 1, "confidence": 1}
    ) as server:
        (runner.folder / "suite.yaml").write_text(JUDGED.format(judge=server.base_url))
        yield server


def test_a_judge_is_asked_once_and_without_its_answer_a_cassette_is_an_error(
    runner: Runner, judge: LoopbackServer
) -> None:
    assert (push(runner).code, len(judge.requests)) == (0, 1)
    assert (push(runner).code, len(judge.requests)) == (0, 1)
    kept = runner.folder / "answers.jsonl"
    shutil.copy(runner.folder / ".viva-ci" / "answers" / f"{stem('suite.yaml')}.jsonl", kept)
    replayed = push(runner, cassette="answers.jsonl")
    assert (replayed.code, len(judge.requests)) == (0, 1), replayed.log
    suite = runner.folder / "suite.yaml"
    suite.write_text(suite.read_text().replace("friendly?", "friendly to all?"))
    missing = push(runner, cassette="answers.jsonl")
    assert (missing.code, len(judge.requests)) == (3, 1), missing.log


def steps() -> list[dict[str, Any]]:
    return read_yaml(ACTION)["runs"]["steps"]


def test_the_action_is_composed_as_github_demands() -> None:
    action = read_yaml(ACTION)
    assert action["runs"]["using"] == "composite"
    assert all(one["description"] and isinstance(one["default"], str) for one in action["inputs"].values())
    for step in steps():
        assert step.keys() <= {"name", "id", "if", "shell", "env", "run", "uses", "with"}
        assert ("run" in step) != ("uses" in step)
        assert "run" not in step or step["shell"] == "bash"
    named = {found[1] for found in re.finditer(r"inputs\.([\w-]+)", ACTION.read_text())}
    assert named == set(action["inputs"])


def test_no_input_is_pasted_into_a_command() -> None:
    """What stands between ${{ and }} becomes a part of the script, whatever it holds; a variable does not."""
    assert [step["name"] for step in steps() if EXPRESSION.search(step.get("run", ""))] == []
