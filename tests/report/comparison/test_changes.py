from __future__ import annotations

from typing import Any

import pytest

from report.trend_cases import PRINTS, SPEC
from vivavoce.records.run import Grading, Run, Status
from vivavoce.report.comparison.changes import MAX_CHARS, MAX_DIFFERENCES, changes_between, metric_change
from vivavoce.store.browse.series import Graded


def build_graded(
    spec: dict[str, Any] = SPEC,
    options: dict[str, Any] | None = None,
    prints: dict[str, str] = PRINTS,
    attempts: int = 10,
    status: Status = "finished",
    version: str = "1.0",
) -> Graded:
    run = Run(
        id="r", suite="s", spec=spec, base="/", options=options or {}, started_at=1.0, status=status, version=version
    )
    summary = {"attempts": attempts, "graders": [{"target": "bot"}]}
    return Graded(run, Grading(id="g", run_id="r", spec=spec, fingerprints=prints, created_at=1.0, summary=summary))


def change_sentences(before: Graded, after: Graded, *targets: str | None) -> list[str]:
    first, other = targets or (None, None)
    return [change.sentence for change in changes_between(before, after, (first, other))]


def with_target(**changed: Any) -> dict[str, Any]:
    return {**SPEC, "target": {**SPEC["target"], **changed}}


def test_two_runs_of_the_same_differ_in_nothing() -> None:
    assert changes_between(build_graded(), build_graded()) == []
    assert metric_change(build_graded().grading, build_graded().grading, "goal") is None


@pytest.mark.parametrize(
    ("after", "text"),
    [
        (build_graded(with_target(model_handles=["large"])), "Target changed: model small → large"),
        (
            build_graded(with_target(base_url="https://b.example")),
            "Target changed: base_url https://bot.example → https://b.example",
        ),
        (build_graded(with_target(system_prompt="x" * (MAX_CHARS + 1))), "Target changed: system_prompt rewritten"),
        (build_graded(with_target(settings={"top_p": 0.5})), "Target changed: settings.top_p 0.5 added"),
        (build_graded(with_target(system_prompt=None)), "Target changed: system_prompt Be kind. removed"),
        (build_graded({**SPEC, "tester": {"model": "user-2"}}), "Tester changed: model user-2 added"),
        (build_graded({**SPEC, "dataset": {"path": "more.jsonl"}}), "Dataset changed: path rows.jsonl → more.jsonl"),
        (build_graded({**SPEC, "trials": 3}), "Dataset changed: trials 3 added"),
        (build_graded(attempts=12), "Dataset changed: conversations 10 → 12"),
        (build_graded(version="1.1"), "vivavoce changed: 1.0 → 1.1"),
    ],
)
def test_what_changed_is_said_in_words(after: Graded, text: str) -> None:
    assert change_sentences(build_graded(), after) == [text]


def test_hashes_tell_what_no_suite_says() -> None:
    first = build_graded(options={"code": "1" * 32, "dataset": "a" * 32, "tester": "p" * 32})
    other = build_graded(options={"code": "2" * 32, "dataset": "b" * 32, "tester": "q" * 32})
    assert change_sentences(first, other) == [
        "Target changed: code 11111111 → 22222222",
        "Tester changed: prompts pppppppp → qqqqqqqq",
        "Dataset changed: contents aaaaaaaa → bbbbbbbb",
    ]
    assert change_sentences(build_graded(), first) == [], "what is not known of one side is not a change"


def test_a_run_that_was_stopped_has_not_another_number_of_conversations() -> None:
    assert change_sentences(build_graded(), build_graded(attempts=3, status="interrupted")) == []


def test_another_target_is_named_once() -> None:
    after = build_graded(with_target(model_handles=["large"]), options={"code": "2" * 32})
    assert change_sentences(build_graded(options={"code": "1" * 32}), after, "small", "large") == [
        "Target changed: small → large"
    ]


def test_many_differences_are_counted() -> None:
    after = build_graded(with_target(settings={f"s{i}": i for i in range(MAX_DIFFERENCES + 2)}))
    assert change_sentences(build_graded(), after)[0].endswith("settings.s3 3 added and 2 more")


@pytest.mark.parametrize(
    ("spec", "prints", "text", "brief"),
    [
        (
            {"goal": {"kind": "metric", "model": "judge-2"}},
            {"goal": "g2"},
            "Metric changed: judge judge-1 → judge-2",
            "judge",
        ),
        (
            SPEC["graders"],
            {"goal": "g2"},
            "Metric changed: its prompt, code or judge; the suite has not changed",
            "metric",
        ),
        (SPEC["graders"], {}, "It is unknown whether the metric was the same before", "metric"),
    ],
)
def test_other_rules_are_told_by_the_fingerprint(spec: Any, prints: dict[str, str], text: str, brief: str) -> None:
    change = metric_change(
        build_graded().grading, build_graded({**SPEC, "graders": spec}, prints=prints).grading, "goal"
    )
    assert change is not None
    assert (change.kind, change.sentence, change.brief) == ("metric", text, brief)


def test_a_reward_changes_with_any_grader_it_rests_on() -> None:
    spec = {**SPEC, "reward": {"kind": "weighted", "weights": {"goal": 1.0}}}
    tone = {**spec, "graders": {**SPEC["graders"], "tone": {"kind": "metric", "model": "judge-9"}}}
    prints = PRINTS | {"reward": "r"}
    change = metric_change(
        build_graded(spec, prints=prints).grading, build_graded(tone, prints={**prints, "tone": "t2"}).grading, "reward"
    )
    assert change is not None
    assert change.sentence == "Metric changed: tone.model judge-1 → judge-9"


def test_values_are_one_line_without_control_characters() -> None:
    after = build_graded(with_target(system_prompt="a\n\x1b[31mb\u202ec"))
    assert change_sentences(build_graded(), after) == ["Target changed: system_prompt Be kind. → a bc"]
