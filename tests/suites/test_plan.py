"""The plan of a suite: which samples run, how often, how many at a time, and which gates can end the trials early."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest

from server.live import get, serving
from vivavoce.errors import UsageError
from vivavoce.records.run import AttemptEnded, Event
from vivavoce.report.details import detail_lines
from vivavoce.report.graded_run import GradedRun
from vivavoce.report.markdown import write_markdown
from vivavoce.report.verdict import explain_verdict
from vivavoce.run.experiment_run import ExperimentRun
from vivavoce.run.options import RunOptions
from vivavoce.run.summary import RunResult
from vivavoce.settings import settings
from vivavoce.store.store import Store
from vivavoce.suites.check import check_suite
from vivavoce.suites.experiment import run_suite, suite_run
from vivavoce.suites.load import load_suite
from vivavoce.suites.plan import Plan, hash_file

from .talks import rows, write_rows


def test_a_dataset_is_known_by_its_content() -> None:
    path = write_rows(rows(2))
    plan = Plan(path, Path(), {}, True, 1, None, None, None, 8)
    before = plan.dataset
    write_rows(rows(2))
    assert plan.dataset == before
    write_rows(rows(3))
    assert hash_file(path) == plan.dataset != before
    ruled = replace(plan, policy="Be kind.")
    assert len({plan.dataset, ruled.dataset, replace(plan, policy="Be brief.").dataset}) == 3


SAMPLES = 20
HEAD = """\
name: early
target: {kind: function, function: "bot.py:reply"}
max_concurrent: 1
graders: {said: {kind: function, function: contains}}
"""
BOT = """\
calls = {}


def reply(message: str) -> str:
    trial = calls[message] = calls.get(message, 0) + 1
    number, often = map(int, message.split())
    if often == 99:
        raise RuntimeError("the bot broke")
    return "no" if often and (number + trial) % often == 0 else "yes"
"""
GATE = "gate: {metric_key: said, aggregation: accuracy, value: 80}\n"
EACH = "gate: {kind: samples, metric_key: said, min_pass: 3}\n"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("bot.py").write_text(BOT)


def write(rest: str, *often: int) -> None:
    """Write a suite in which sample i fails every `often[i]`-th time, never for 0 and with an error for 99."""
    rows = [f'{{id: s{i}, input: "{i} {n}", ground_truth: "yes"}}' for i, n in enumerate(often or [10] * SAMPLES)]
    Path("suite.yaml").write_text(f"{HEAD}dataset: {{rows: [{', '.join(rows)}]}}\n{rest}")


def ran(rest: str, *often: int, **options: int) -> RunResult:
    write(rest, *often)
    return run_suite("suite.yaml", RunOptions(**options))


def trials_of(result: RunResult) -> Counter[str]:
    return Counter(outcome.attempt.key.sample_id for outcome in result.outcomes())


def test_trials_end_when_the_gate_is_decided_and_every_reader_has_that_interval() -> None:
    result = ran(f"trials: {{max: 50, until: decided}}\n{GATE}")
    trials, grader = result.summary.trials, result.summary.grader("said")
    assert trials is not None
    assert (trials.met, trials.planned, result.exit_code, result.run.status) == (True, 1000, 0, "finished")
    assert 0 < trials.spent < 500
    assert set(trials_of(result).values()) == {trials.spent // SAMPLES}
    assert grader.pass_low is not None
    assert grader.pass_low > 0.8
    (reason,) = result.summary.reasons
    assert (reason.low, reason.high) == (grader.pass_low, grader.pass_high)
    assert f"{100 * grader.pass_low:.4g}% to " in explain_verdict(result.summary)[0]
    text = (
        f"{trials.spent} of 1,000 conversations were enough to decide the gate; intervals are valid at any "
        "time, for these samples only"
    )
    assert detail_lines(result.summary)[0] == f"trials: {text}"
    with Store.open(settings().store) as store:
        run, grading = store.run(result.run.id), store.grading(result.run.id)
        output = StringIO()
        write_markdown(GradedRun(store, run, grading), output)
        assert text in output.getvalue()
        with serving(store) as url:
            assert text in get(f"{url}/runs/{run.id}").text


def test_a_gate_that_trials_do_not_decide_is_no_pass() -> None:
    result = ran(f"trials: {{max: 3, until: decided}}\n{GATE}")
    assert (result.exit_code, result.run.status, result.summary.attempts) == (3, "finished", 60)
    assert explain_verdict(result.summary)[0].endswith("this does not decide the gate")
    assert "did not decide the gate" in detail_lines(result.summary)[0]


def test_a_bad_target_fails_early() -> None:
    result = ran(f"trials: {{max: 50, until: decided}}\n{GATE}", *[2] * SAMPLES)
    assert (result.exit_code, result.summary.verdict) == (1, "fail")
    assert result.summary.attempts < 300


def test_a_wanted_width_ends_trials() -> None:
    result = ran("trials: {max: 50, half_width: 0.1}\n")
    grader = result.summary.grader("said")
    assert grader.low is not None
    assert grader.high is not None
    assert (grader.high - grader.low) / 2 <= 0.1
    assert "were enough for the mean of said ±0.1" in detail_lines(result.summary)[0]
    assert result.summary.attempts < 1000


def test_two_conditions_are_decided_together() -> None:
    both = "gate: {kind: logical, operator: and, conditions: [{metric_key: said, value: 0.7}, "
    result = ran(f"trials: {{max: 50, until: decided}}\n{both}{{metric_key: said, value: 0.3}}]}}\n")
    assert (result.exit_code, len(result.summary.reasons)) == (0, 2)


def test_samples_that_are_undecided_get_the_trials() -> None:
    # s0 passes always, s1 fails every other time, s2 every third
    result = ran(f"trials: {{max: 6, until: decided}}\n{EACH}", 0, 2, 3)
    assert result.exit_code == 0
    assert trials_of(result) == {"s0": 3, "s1": 6, "s2": 5}
    grader = result.summary.grader("said")
    assert (grader.low, grader.high) == (None, None)
    assert detail_lines(result.summary)[0].endswith("so means have no interval")


def test_a_sample_that_cannot_pass_any_more_ends_them() -> None:
    result = ran(f"trials: {{max: 5, until: decided}}\n{EACH}", 0, 1)
    assert (result.exit_code, trials_of(result)) == (1, {"s0": 3, "s1": 3})


def test_errors_leave_open_what_they_could_have_changed() -> None:
    result = ran(f"trials: {{max: 4, until: decided}}\n{GATE}", 99, *[0] * 9)
    assert (result.exit_code, result.summary.attempts) == (3, 40)


def test_a_number_on_the_command_line_is_a_fixed_number() -> None:
    result = ran(f"trials: {{max: 50, until: decided}}\n{GATE}", trials=2)
    assert (result.summary.trials, result.summary.attempts) == (None, 40)


class StopsAfter:
    """Interrupts a run after a number of conversations."""

    def __init__(self, many: int) -> None:
        self.left = many
        self.run: ExperimentRun | None = None

    async def on(self, event: Event) -> None:
        if isinstance(event, AttemptEnded):
            self.left -= 1
            if self.left == 0:
                assert self.run is not None
                self.run.stop()


@pytest.mark.parametrize("many", [1, 20, 30, 45])
@pytest.mark.parametrize(
    "rest", [f"trials: {{max: 50, until: decided}}\n{GATE}", "trials: {max: 9, half_width: 0.15}\n"]
)
async def test_a_run_that_is_continued_ends_where_it_would_have_ended(rest: str, many: int) -> None:
    write(rest)
    suite, options = load_suite(Path("suite.yaml")), RunOptions()
    with Store.open(settings().store) as store:
        whole = await suite_run(suite, options, store=store).execute()
        Path("bot.py").write_text(BOT)
        first = StopsAfter(many)
        first.run = run = suite_run(suite, options, store=store, listeners=[first])
        broken = await run.execute()
        assert broken.run.status == "interrupted"
        again = await suite_run(suite, options, store=store, resumed=broken.run).execute()
        assert (again.run.id, again.run.status) == (broken.run.id, "finished")
        assert trials_of(again).keys() == trials_of(whole).keys()
        assert again.summary.trials is not None
        assert again.summary.trials.met


@pytest.mark.parametrize(
    ("rest", "text"),
    [
        ("trials: {max: 50}\n", "trials: needs either until: decided or a half_width; for a fixed number of trials"),
        ("trials: {max: 1, until: decided}\n", "trials.max: should be greater than or equal to 2, got 1"),
        ("trials: 0\n", "trials: should be greater than or equal to 1, got 0"),
        ("trials: {max: 9, halfwidth: 1}\n", "trials.halfwidth: unknown key; did you mean 'half_width'?"),
        ("trials: {max: 9, until: decided}\n", "trials.until: there is no gate to decide; write a gate, or half_width"),
        (
            "trials: {max: 9, until: decided}\ngate: {metric_key: said, aggregation: p95, value: 0.5}\n",
            "gate.aggregation: p95 cannot be decided while trials are still made; write avg_score or accuracy",
        ),
        (
            "trials: {max: 9, until: decided}\ngate: {metric_key: said, value: 0.5, on: lower}\n",
            "gate.on: on: lower cannot",
        ),
        ("trials: {max: 9, until: decided}\ngate: {metric_key: said, value: 0.5, op: eq}\n", "gate.op: op: eq cannot"),
        (
            "trials: {max: 9, until: decided}\ngate: {metric_key: said, value: 1}\n",
            "gate.value: no interval lies wholly",
        ),
        (f"trials: {{max: 2, until: decided}}\n{EACH}", "gate.min_pass: needs 3 trials of each sample"),
        (f"trials: {{max: 9, half_width: 0.1}}\n{EACH}", "gate: a condition on each sample has no interval"),
        (
            "trials: {max: 9, until: decided}\ngate: {kind: weighted_average, weights: {said: 1}, value: 0.5}\n",
            "gate: a weighted mean of aggregates cannot be decided",
        ),
    ],
)
def test_what_cannot_end_early_is_refused_before_anything_is_asked(rest: str, text: str) -> None:
    write(rest)
    with pytest.raises(UsageError) as caught:
        check_suite(load_suite(Path("suite.yaml")))
    assert text in str(caught.value)
