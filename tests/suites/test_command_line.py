"""From a command line to a suite: targets by name, and the suites of `viva judge` and `viva test`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from vivavoce.errors import UsageError
from vivavoce.suites.command_line import judging_suite, read_target
from vivavoce.suites.grading_spec import MetricGraderSpec
from vivavoce.suites.load import Suite


def test_a_function_is_found_from_where_we_are(tmp_path: Path) -> None:
    Path("bot.py").write_text("def reply(message): ...\n")
    assert read_target("bot.py:reply") == {"kind": "function", "function": f"{tmp_path / 'bot.py'}:reply"}


def test_an_endpoint_is_an_address_and_a_model() -> None:
    target = {"kind": "openai", "base_url": "http://localhost/v1", "model_handles": ["org/model#1"]}
    assert read_target("http://localhost/v1#org/model#1") == target


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("nofile.py:f", "--target: no file 'nofile.py'"),
        ("bot.py:rpely", "--target: bot.py has no 'rpely'; did you mean 'reply'?"),
        ("bot.py", "--target: 'bot.py' must be file.py:function or http://host/v1#MODEL"),
        ("http://localhost/v1", "--target: the model is missing; write http://localhost/v1#MODEL"),
        ("http://#m", "--target: 'http://' is not a web address such as http://localhost:8000/v1"),
        (
            "http://me:s3cret@host/v1",
            "--target: the address holds a user name or a password, which would be stored and shown; leave them out",
        ),
    ],
)
def test_a_wrong_name_is_one_line_that_names_the_option(name: str, text: str) -> None:
    Path("bot.py").write_text("def reply(message): ...\n")
    with pytest.raises(UsageError) as caught:
        read_target(name)
    assert str(caught.value) == text


def test_a_file_that_raises_keeps_its_own_place(tmp_path: Path) -> None:
    Path("broken.py").write_text("1 / 0\n")
    with pytest.raises(UsageError) as caught:
        read_target("broken.py:f")
    assert str(caught.value).startswith(f"{tmp_path / 'broken.py'}:1 raises ZeroDivisionError")


OWN = """\
from vivavoce.metrics import AllOf, SafetyMetric
from vivavoce.testing import ScriptedModel

safe = SafetyMetric()
mine = SafetyMetric(ScriptedModel([]))
mixed = AllOf(safe, SafetyMetric(ScriptedModel([]), name="mine"))
"""
POLITE = "name: polite\nprompt: Is it polite?\nscore: {kind: binary}\n"


@pytest.fixture(autouse=True)
def _files() -> None:  # pyright: ignore[reportUnusedFunction]
    Path("own.py").write_text(OWN)
    Path("polite.yaml").write_text(POLITE)
    Path("kind.yml").write_text(f"{POLITE.replace('polite', 'kind')}model: openai:own\n")
    Path("folder").mkdir()
    Path("folder/talks.jsonl").write_text(json.dumps({"messages": [{"role": "user", "content": "Hi."}]}))


def judging(metrics: str, model: str | None = None, **more: Any) -> Suite:
    return judging_suite(Path("folder/talks.jsonl"), metrics.split(), model, **more)


def specs(suite: Suite) -> dict[str, MetricGraderSpec]:
    return {name: spec for name, spec in suite.spec.graders.items() if isinstance(spec, MetricGraderSpec)}


def models(metrics: str, model: str | None = None) -> dict[str, str | None]:
    return {name: spec.model for name, spec in specs(judging(metrics, model)).items()}


def test_a_suite_replays_the_file_and_grades_by_the_metrics() -> None:
    suite = judging("safety refusal", "openai:x", scope="turn", fields={"goal": "metadata.wish"}, max_concurrent=3)
    spec = suite.spec
    assert (spec.name, spec.driver, spec.target, spec.max_concurrent) == ("judge talks", "replay", None, 3)
    assert (spec.dataset.path, spec.dataset.fields) == (
        str(Path("folder/talks.jsonl").absolute()),
        {"goal": "metadata.wish"},
    )
    assert {name: (grader.metric, grader.scope) for name, grader in specs(suite).items()} == {
        "safety": ("safety", "turn"),
        "refusal": ("refusal", "turn"),
    }
    assert (suite.base, suite.source) == (Path.cwd(), "judge")


def test_scores_are_called_by_the_name_within_the_file_or_that_of_the_file() -> None:
    assert list(models("own.py:safe polite.yaml kind.yml SafetyMetric", "openai:x")) == [
        "safe",
        "polite",
        "kind",
        "SafetyMetric",
    ]


def test_the_judge_that_is_named_judges_what_brings_none_and_what_a_file_describes() -> None:
    assert models("safety refusal own.py:safe own.py:mine own.py:mixed polite.yaml kind.yml", "openai:x") == {
        "safety": "openai:x",
        "refusal": None,
        "safe": "openai:x",
        "mine": None,
        "mixed": "openai:x",
        "polite": "openai:x",
        "kind": "openai:x",
    }


def test_the_judge_of_the_environment_leaves_a_file_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VIVAVOCE_JUDGE", "openai:e")
    assert models("safety own.py:mine polite.yaml kind.yml") == {
        "safety": "openai:e",
        "mine": None,
        "polite": "openai:e",
        "kind": None,
    }


@pytest.mark.parametrize(
    ("metrics", "more", "complaint"),
    [
        ("", {}, "--metrics needs at least one metric"),
        ("refusal refusal", {}, "each metric needs a different name; got refusal, refusal"),
        ("own.py:safe other.py:safe", {}, "each metric needs a different name"),
        ("own.py:reward", {}, "'reward' is the name of the reward of a sample"),
        ("saftey", {}, "no metric 'saftey'; did you mean 'safety'?"),
        ("gone.py:x", {}, "no file 'gone.py'"),
        ("gone.yaml", {}, "gone.yaml: cannot be read"),
        ("safety", {}, "the metric 'safety' needs a judge: use --judge, or set VIVAVOCE_JUDGE"),
        ("own.py:mixed", {}, "the metric 'mixed' needs a judge"),
        ("polite.yaml", {"model": "x", "scope": "turn"}, "'polite.yaml' already has its options; remove scope"),
        ("refusal", {"max_concurrent": 0}, "max_concurrent: "),
        ("safety", {"model": "http://me:secret@host/v1#m"}, "holds a user name or a password"),
    ],
)
def test_a_mistake_is_told(metrics: str, more: dict[str, Any], complaint: str) -> None:
    with pytest.raises(UsageError) as caught:
        judging(metrics, **more)
    assert complaint in str(caught.value)
    assert "secret" not in str(caught.value)


def test_every_mistake_is_told_at_once() -> None:
    with pytest.raises(UsageError) as caught:
        judging("saftey refusel safety")
    assert len(caught.value.problems) == 3
