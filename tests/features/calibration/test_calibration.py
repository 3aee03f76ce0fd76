"""What a calibration shows of a judge, and what cannot be said."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from server.pages.cases import keep, outcome
from vivavoce.errors import UsageError
from vivavoce.features.calibration.calibration import (
    CalibrationReport,
    calibration_report,
    figures_of,
    from_file,
    from_people,
)
from vivavoce.features.calibration.report import closing, markdown_lines, needed_line, terminal_lines
from vivavoce.records.label import Calibration, Label, LabelledVerdict
from vivavoce.records.score import Score
from vivavoce.report.graded_run import GradedRun
from vivavoce.stats.agreement import Agreement
from vivavoce.stats.intervals import wilson
from vivavoce.store.store import Store

PASSED = [*[True] * 44, *[False] * 16]
GOOD = [*[True] * 40, *[False] * 4, *[True] * 4, *[False] * 12]


@pytest.fixture
def store(tmp_path: Path) -> Any:
    """A store with a run of a hundred conversations; the judge passes 70 of them."""
    with Store.open(str(tmp_path / "kept.db")) as store:
        verdicts = [*PASSED, *[True] * 26, *[False] * 14]
        outcomes = [
            outcome(f"s{n:02}", grades={"goal": Score(value=float(verdict), confidence=0.9)}, position=n)
            for n, verdict in enumerate(verdicts)
        ]
        keep(store, outcomes, fingerprints={"goal": "f1"})
        yield store


def label(store: Store, number: int, *, good: bool, probability: float | None = 1.0, **more: Any) -> None:
    key_fields = {
        "sample_id": f"s{number:02}",
        "target": "bot",
        "trial": 0,
        "grader": "goal",
        "author": "Ida",
        "blind": True,
    }
    label_fields = {"verdict": "pass" if good else "fail", "created_at": 1.0, "drawn": probability}
    store.labels.set("run-1", Label.model_validate({**key_fields, **label_fields, **more}))


def add_labels(store: Store, **more: Any) -> None:
    for number, good in enumerate(GOOD):
        label(store, number, good=good, **more)


def report(store: Store, **more: Any) -> CalibrationReport:
    grading = store.grading("run-1")
    return calibration_report(store, grading, from_people(store, grading, "goal", "Ida"), **more)


def test_the_figures_are_those_of_the_table(store: Store) -> None:
    add_labels(store)
    shown_report = report(store)
    assert (shown_report.both_pass, shown_report.too_strict, shown_report.too_lenient, shown_report.both_fail) == (
        40,
        4,
        4,
        12,
    )
    assert (shown_report.labels, shown_report.drawn, shown_report.not_blind) == (60, 60, 0)
    figures = {figure.name: figure for figure in shown_report.figures}
    sensitivity, specificity = figures["sensitivity"], figures["specificity"]
    assert (sensitivity.n, sensitivity.value) == (44, 40 / 44)
    assert (sensitivity.low, sensitivity.high) == pytest.approx(wilson(40, 44))
    assert (specificity.n, specificity.value) == (16, 12 / 16)
    assert (specificity.low, specificity.high) == pytest.approx(wilson(12, 16))
    table = Agreement(tp=40, fp=4, fn=4, tn=12)
    assert figures["kappa"].value == pytest.approx(table.kappa)
    assert (figures["kappa"].low, figures["kappa"].high) == pytest.approx(table.kappa_interval())
    assert figures["accuracy"].value == pytest.approx(52 / 60)
    assert figures["brier"].value == pytest.approx((52 * 0.01 + 8 * 0.81) / 60)
    (confidence_bin,) = shown_report.bins
    assert (confidence_bin.low_end, confidence_bin.high_end, confidence_bin.n, confidence_bin.said) == (
        0.9,
        1.0,
        60,
        pytest.approx(0.9),
    )
    assert confidence_bin.right == pytest.approx(52 / 60)


def test_rates_are_corrected_and_labels_counted(store: Store) -> None:
    add_labels(store)
    shown_report = report(store)
    (rate,) = shown_report.rates
    assert (rate.rate.raw, rate.rate.method, rate.rate.labels) == (0.7, "prediction_powered", 60)
    assert "70.0% pass (judge), 71.2% corrected [59.9%, 80.4%] by 60 labels of this run" in next(closing(shown_report))
    assert shown_report.needed.labels is None
    assert "labelling all 40 others would not be enough; it is " in needed_line(shown_report)
    wide = report(store, width=0.25)
    assert wide.needed.labels == 0
    assert needed_line(wide).startswith("the labels are enough for a 95% rate interval 25.0% wide; it is")


def test_labels_by_doubt_enter_nothing_and_are_named(store: Store) -> None:
    add_labels(store)
    before = report(store)
    for number in range(60, 70):
        label(store, number, good=False, probability=None)
    shown_report = report(store)
    assert (shown_report.labels, shown_report.drawn) == (70, 60)
    assert (shown_report.figures, shown_report.rates) == (
        before.figures,
        [rate.model_copy() for rate in shown_report.rates],
    )
    assert shown_report.rates[0].rate.value == before.rates[0].rate.value
    assert "10 labels of conversations that were not randomly sampled: not counted" in shown_report.notes


@pytest.mark.parametrize(
    ("verdicts", "note"),
    [
        ([], "no corrected rate: no conversation has a label"),
        ([True] * 3, "people pass every sampled conversation"),
        ([False] * 3, "people fail every sampled conversation"),
        ([True, False, True], "3 labels show only large differences"),
        ([True, False, True], "the judge passes everything: its pass rate is uninformative"),
    ],
)
def test_what_cannot_be_said_is_said(store: Store, verdicts: list[bool], note: str) -> None:
    for number, good in enumerate(verdicts):
        label(store, number, good=good)
    assert any(note in line for line in report(store).notes)
    assert list(terminal_lines(report(store)))
    assert list(markdown_lines(report(store)))


def test_people_who_differ_are_left_out_until_somebody_decides(store: Store) -> None:
    add_labels(store)
    label(store, 0, good=False, author="Olu")
    shown_report = report(store)
    assert shown_report.drawn == 59
    assert "1 conversation on which people are evenly split: not counted, so the figures are" in shown_report.notes[0]
    assert shown_report.people is not None
    assert shown_report.people.n == 1


def test_labels_in_sight_of_the_answer_are_told(store: Store) -> None:
    add_labels(store, blind=False)
    assert any("60 drawn labels made while the judge's answer was visible" in line for line in report(store).notes)


def test_a_label_for_every_conversation_was_not_chosen(store: Store) -> None:
    for number in range(100):
        label(store, number, good=number % 3 > 0, probability=None)
    shown_report = report(store)
    assert (shown_report.labels, shown_report.drawn) == (100, 100)
    assert shown_report.rates[0].rate.value == pytest.approx(66 / 100)


def test_several_trials_of_a_sample_are_worth_less() -> None:
    verdict = LabelledVerdict(sample_id="a", target="bot", trial=0, good=True, passed=True, score=1.0, drawn=1.0)
    many = [
        verdict.model_copy(update={"sample_id": f"s{n}", "trial": trial, "passed": n % 4 > 0})
        for n in range(20)
        for trial in range(3)
    ]
    single = [label for label in many if label.trial == 0]
    (of_many, of_single) = (figures_of(labels)[0] for labels in (many, single))
    assert (of_many.value, of_single.value) == pytest.approx((0.75, 0.75))
    assert of_many.low is not None
    assert of_single.low == pytest.approx(of_many.low, abs=0.02)


def test_slices_are_those_with_enough_labels(tmp_path: Path) -> None:
    with Store.open(str(tmp_path / "two.db")) as store:
        outcomes = [
            outcome(f"s{n}", grades={"goal": Score(value=float(n % 3 > 0))}, target=target, position=n)
            for n in range(14)
            for target in ("bot", "other")
        ]
        keep(store, outcomes, fingerprints={"goal": "f1"})
        for n in range(14):
            for target in ("bot", "other") if n < 5 else ("bot",):
                key_fields = {"sample_id": f"s{n}", "target": target, "trial": 0, "grader": "goal", "author": "Ida"}
                label_fields = {"verdict": "pass" if n % 2 else "fail", "created_at": 1.0, "drawn": 1.0}
                store.labels.set("run-1", Label.model_validate({**key_fields, **label_fields}))
        (part,) = report(store).slices
        assert (part.kind, part.name, part.labels) == ("target", "bot", 14)


def load_graded(store: Store) -> GradedRun:
    run = store.run("run-1")
    return GradedRun(store, run, store.grading(run.id))


def test_a_file_of_labels_is_drawn_only_if_somebody_says_so(store: Store, tmp_path: Path) -> None:
    file = tmp_path / "labels.jsonl"
    file.write_text('{"sample_id": "s00", "verdict": "pass"}\n{"sample_id": "s01", "verdict": "fail", "drawn": 0.5}\n')
    result = from_file(load_graded(store), "goal", file, "Ida", at_random=False)
    assert [(label.sample_id, label.good, label.drawn) for label in result.labels] == [
        ("s00", True, None),
        ("s01", False, 0.5),
    ]
    result = from_file(load_graded(store), "goal", file, "Ida", at_random=True)
    assert [label.drawn for label in result.labels] == [1.0, 0.5]


def test_the_agreement_of_people_stands_beside_the_judge_wherever_their_labels_are_from(
    store: Store, tmp_path: Path
) -> None:
    file = tmp_path / "labels.jsonl"
    verdict_rows = [("s00", "Ida", "pass"), ("s00", "Olu", "pass"), ("s01", "Ida", "fail"), ("s01", "Olu", "pass")]
    with file.open("w") as lines:
        for sample, author, verdict in verdict_rows:
            lines.write(json.dumps({"sample_id": sample, "author": author, "verdict": verdict}) + "\n")
            number = int(sample[1:])
            label(store, number, good=verdict == "pass", author=author)
    by_file = from_file(load_graded(store), "goal", file, "Ida", at_random=True)
    by_people = from_people(store, store.grading("run-1"), "goal", "Ida")
    for each in (by_file, by_people):
        shown_report = calibration_report(store, store.grading("run-1"), each)
        assert shown_report.people is not None
        assert (shown_report.people.people, shown_report.people.n, shown_report.people.same) == (["Ida", "Olu"], 2, 1)
        assert "2 people: 1 of 2 with the same label" in list(terminal_lines(shown_report))


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        (
            '{"sample_id": "s00", "verdict": "good"}',
            "labels.jsonl:1 verdict: Input should be 'pass', 'fail' or 'unsure'",
        ),
        ('{"verdict": "pass"}', "labels.jsonl:1 sample_id: Field required"),
        ('{"sample_id": "nobody", "verdict": "pass"}', "labels.jsonl:1 run run-1 has no conversation nobody"),
        (
            '{"sample_id": "s00", "verdict": "pass", "grader": "tone"}',
            "has no label of a whole conversation for grader",
        ),
        ("", "has no label of a whole conversation for grader"),
        ("{", "labels.jsonl:1"),
    ],
)
def test_a_file_that_is_none_is_refused(store: Store, tmp_path: Path, line: str, complaint: str) -> None:
    file = tmp_path / "labels.jsonl"
    file.write_text(line)
    with pytest.raises(UsageError) as refused:
        from_file(load_graded(store), "goal", file, "Ida", at_random=True)
    assert complaint in str(refused.value)


def test_labels_of_another_run_correct_this_one(store: Store) -> None:
    add_labels(store)
    calibration = from_people(store, store.grading("run-1"), "goal", "Ida")
    elsewhere = Calibration.model_validate({**calibration.model_dump(), "run_id": "run-0"})
    report = calibration_report(store, store.grading("run-1"), elsewhere)
    assert report.rates[0].rate.method == "rogan_gladen"
