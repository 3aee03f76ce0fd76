"""What a test of metrics counts: exact figures for scores that are made up."""

from __future__ import annotations

from io import StringIO

import pytest
from rich.console import Console

from vivavoce.features.metric_tests.records import MetricFigures, MetricScores, MetricTest, Planned, figures_of
from vivavoce.features.metric_tests.report import gate_lines, inconclusive, markdown_lines, terminal_lines
from vivavoce.features.metric_tests.versions import Kind, Version
from vivavoce.records.score import Evidence, Finding, Score

GOOD = Score(value=1.0, raw=True)


def bad(turn: int | None = None) -> Score:
    findings = (Finding(kind="claim", what="It is wrong.", verdict="false", state="fail", turn=turn),)
    return Score(value=0.0, raw=False, findings=findings)


def version(
    of: str, kind: Kind = "as_it_is", *edits: str, turn: int | None = None, turns: int = 4, speaker: str | None = None
) -> Version:
    return Version(of=of, kind=kind, edits=edits, turn=turn, turns=turns, speaker=speaker)


def of_one(*scores: tuple[Version, Score], metric: str = "coherence") -> MetricFigures:
    answers = MetricScores(metric, "m:x", "run-1", scores)
    (figure,) = figures_of([answers], Planned({metric: metric}), conversations=1).metrics
    return figure


def test_a_defect_is_seen_where_the_verdict_turns_and_placed_where_its_turn_is_named() -> None:
    metric_figures = of_one(
        (version("a"), GOOD),
        (version("b"), GOOD),
        (version("a", "defect", "loop", turn=2), bad(2)),
        (version("b", "defect", "loop", turn=1), bad(3)),
        (version("a", "defect", "contradiction", turn=0), GOOD),
    )
    loop, contradiction = metric_figures.edits
    assert (loop.edit, loop.moved.times, loop.moved.n, loop.named, loop.placed, loop.drop) == ("loop", 2, 2, 2, 1, 1.0)
    assert (contradiction.moved.times, contradiction.moved.n, contradiction.drop) == (0, 1, 0.0)
    assert (metric_figures.detection.times, metric_figures.detection.n) == (2, 3)
    assert metric_figures.detection.share == pytest.approx(2 / 3)


def test_what_a_metric_is_not_there_to_see_is_not_counted_against_it() -> None:
    metric_figures = of_one((version("a"), GOOD), (version("a", "defect", "insult", turn=1), GOOD), metric="coherence")
    assert not metric_figures.edits[0].wanted
    assert metric_figures.detection.n == 0
    assert of_one((version("a"), GOOD), (version("a", "defect", "insult", turn=1), GOOD), metric="own").detection.n == 1


def test_a_conversation_that_fails_as_it_is_compares_nothing() -> None:
    metric_figures = of_one((version("a"), bad()), (version("a", "defect", "loop", turn=1), bad()))
    assert (metric_figures.compared, metric_figures.failed_as_is, metric_figures.detection.n) == (0, 1, 0)


def test_harmless_edits_that_turn_the_verdict_are_false_alarms() -> None:
    metric_figures = of_one(
        (version("a"), GOOD), (version("a", "harmless", "markdown"), bad()), (version("a", "harmless", "padding"), GOOD)
    )
    assert (metric_figures.false_alarms.times, metric_figures.false_alarms.n) == (1, 2)
    assert not any(edit.wanted for edit in metric_figures.edits)


def test_an_error_is_counted_apart() -> None:
    metric_figures = of_one(
        (version("a"), GOOD), (version("a", "defect", "loop", turn=1), Score(state="error", reason="broken"))
    )
    assert (
        metric_figures.errors,
        metric_figures.edits[0].errors,
        metric_figures.edits[0].moved.n,
        metric_figures.detection.share,
    ) == (1, 1, 0, None)


def test_what_is_skipped_is_no_error() -> None:
    skipped = Score(state="skipped", reason="nothing to judge")
    metric_figures = of_one((version("a"), GOOD), (version("a", "defect", "loop", turn=1), skipped))
    assert (
        metric_figures.errors,
        metric_figures.skipped,
        metric_figures.edits[0].errors,
        metric_figures.detection.n,
    ) == (0, 1, 0, 0)


def test_a_defect_is_rescued_where_persuasion_makes_the_verdict_good_again() -> None:
    metric_figures = of_one(
        (version("a"), GOOD),
        (version("b"), GOOD),
        (version("c"), GOOD),
        (version("a", "defect", "loop", turn=1), bad()),
        (version("b", "defect", "loop", turn=1), bad()),
        (version("c", "defect", "loop", turn=1), GOOD),
        (version("a", "persuasion", "loop", "flattery", turn=1), GOOD),
        (version("b", "persuasion", "loop", "flattery", turn=1), bad()),
        (version("c", "persuasion", "loop", "flattery", turn=1), GOOD),
    )
    (flattery,) = metric_figures.rescued
    assert (flattery.edit, flattery.moved.times, flattery.moved.n) == ("flattery", 1, 2)


def test_a_metric_without_a_verdict_is_moved_by_another_value() -> None:
    def value(raw: float) -> Score:
        return Score(raw=raw, other_evidence=(Evidence(text="x", turn=1),))

    metric_figures = of_one((version("a"), value(3.0)), (version("a", "defect", "loop", turn=1), value(4.0)))
    assert (metric_figures.detection.times, metric_figures.edits[0].placed, metric_figures.edits[0].drop) == (
        1,
        1,
        None,
    )


def test_the_halves_of_a_conversation_are_compared() -> None:
    scores = [(version(str(i)), GOOD) for i in range(8)]
    scores += [(version(str(i), "defect", "loop", turn=3), GOOD) for i in range(4)]
    scores += [(version(str(i), "defect", "loop", turn=0), bad(0)) for i in range(4, 8)]
    position = of_one(*scores).position
    assert position is not None
    assert (position.one.share, position.other.share, position.difference) == (0.0, 1.0, -1.0)
    assert position.high is not None
    assert position.high < 0


def by_two_judges(*conversations: tuple[str, Score, Score]) -> MetricTest:
    """Return what a test shows of two judges, from who spoke in each conversation and what each judge said of it."""
    spoken = [(version(str(at), speaker=who), mine, theirs) for at, (who, mine, theirs) in enumerate(conversations)]
    return figures_of(
        [
            MetricScores("coherence", "p:mine", "p:mine", [(each, mine) for each, mine, _ in spoken]),
            MetricScores("coherence", "p:else", "p:else", [(each, theirs) for each, _, theirs in spoken]),
        ],
        Planned({"coherence": "coherence"}),
        conversations=len(spoken),
    )


def test_a_judge_prefers_its_own_by_a_difference_of_differences() -> None:
    (preference,) = by_two_judges(("x:mine", GOOD, bad()), ("theirs", bad(), bad())).self_preference
    assert (preference.judge, preference.own, preference.others, preference.difference, preference.conversations) == (
        "p:mine",
        1.0,
        0.0,
        1.0,
        1,
    )
    assert (preference.low, preference.high) == (None, None)


def test_the_preference_of_a_judge_for_its_own_has_an_interval_where_there_are_several() -> None:
    own = [("x:mine", GOOD, bad() if at % 2 else GOOD) for at in range(12)]
    rest = [("theirs", GOOD if at % 4 == 0 else bad(), GOOD if at % 4 == 1 else bad()) for at in range(12)]
    judges = by_two_judges(*own, *rest)
    (preference,) = judges.self_preference
    assert (preference.own, preference.others, preference.difference, preference.conversations) == (0.5, 0.0, 0.5, 12)
    assert preference.low is not None
    assert preference.high is not None
    assert -0.2 < preference.low < 0.1 < 0.9 < preference.high <= 1.1
    (said,) = [line for line in print_lines(judges, 400) if "own model" in line]
    assert "prefers what its own model said by +50.0% [-12.2%, +101.1%]" in said


def print_lines(test: MetricTest, width: int = 160) -> list[str]:
    """Return the lines of a window as wide as that."""
    console = Console(width=width, file=StringIO(), record=True)
    for line in terminal_lines(test):
        console.print(line, soft_wrap=isinstance(line, str), markup=False, highlight=False)
    return console.export_text().splitlines()


def build_test() -> MetricTest:
    scores = [
        (version("a"), GOOD),
        (version("b"), GOOD),
        (version("a", "defect", "loop", turn=2), bad(2)),
        (version("b", "defect", "loop", turn=2), GOOD),
        (version("a", "defect", "contradiction", turn=1), GOOD),
        (version("a", "harmless", "markdown"), bad()),
        (version("a", "persuasion", "loop", "padding", turn=2), bad()),
    ]
    return figures_of(
        [MetricScores("coherence", "m:x", "run-1", scores)],
        Planned({"coherence": "coherence"}),
        conversations=2,
        left_out=1,
    )


def test_the_tables_say_what_was_counted() -> None:
    lines = "\n".join(print_lines(build_test()))
    assert lines.startswith(
        "2 conversations with defects and harmless edits; left out: 1 that are not good as they are\n"
    )
    assert "coherence by m:x sees none of these: contradiction" in lines
    assert [line.split() for line in lines.splitlines() if line.startswith("loop")] == [
        ["loop", "2", "50.0%", "[9.5%,", "90.5%]", "1", "of", "1", "0.50"]
    ]
    markdown = "\n".join(markdown_lines(build_test()))
    assert "| loop | 2 | 50.0% | [9.5%, 90.5%] | 1 of 1 | 0.50 |" in markdown
    assert "| markdown | 1 | 100.0% |" in markdown


def test_a_gate_names_what_is_not_met() -> None:
    assert list(gate_lines(build_test(), 0.3, 1.0)) == []
    assert [line.partition(" [")[0] for line in gate_lines(build_test(), 0.5, 0.5)] == [
        "coherence by m:x sees 33.3%",
        "coherence by m:x is moved by 100.0%",
    ]


def test_two_metrics_stand_side_by_side_for_each_defect() -> None:
    def answers(metric: str, *scores: tuple[Version, Score]) -> MetricScores:
        return MetricScores(metric, None, "run-1", [(version("a"), GOOD), *scores])

    loop, insult = version("a", "defect", "loop", turn=1), version("a", "defect", "insult", turn=1)
    results = [answers("coherence", (loop, bad(1)), (insult, GOOD)), answers("toxicity", (loop, GOOD), (insult, GOOD))]
    metric_test = figures_of(results, Planned({"coherence": "coherence", "toxicity": "toxicity"}), conversations=1)
    lines = print_lines(metric_test)
    start = lines.index("defect  coherence  toxicity")
    assert [line.split() for line in lines[start + 1 : start + 3]] == [
        ["loop", "1", "of", "1", "–"],
        ["insult", "–", "0", "of", "1"],
    ]


def test_defects_that_the_user_names_are_for_every_metric() -> None:
    scores = [(version("a"), GOOD), (version("a", "defect", "insult", turn=1), GOOD)]
    planned = Planned({"coherence": "coherence"}, ["insult", "loop"], by_name=True)
    metric_test = figures_of([MetricScores("coherence", None, "run-1", scores)], planned, conversations=1)
    assert (metric_test.metrics[0].detection.times, metric_test.metrics[0].detection.n, metric_test.no_place) == (
        0,
        1,
        ["loop"],
    )


def test_where_nothing_was_compared_a_gate_is_inconclusive_and_not_failed() -> None:
    nothing = figures_of(
        [MetricScores("coherence", None, "run-1", [(version("a"), bad())])], Planned({}), conversations=1
    )
    assert list(gate_lines(nothing, 0.8, 0.1)) == []
    assert inconclusive(nothing, None, None)
    assert "coherence: nothing could be compared" in print_lines(nothing)
    assert not inconclusive(build_test(), 0.9, 0.1)


def test_in_a_narrow_window_columns_are_left_out_and_named() -> None:
    lines = print_lines(build_test(), 50)
    assert "not shown, the terminal is too narrow: 95%" in lines
    (loop,) = (line.split() for line in lines if line.startswith("loop"))
    assert loop == ["loop", "2", "50.0%", "1", "of", "1", "0.50"]
