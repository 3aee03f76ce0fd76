"""The engine runs an experiment that somebody built by hand: it needs no suite and no file."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from vivavoce.errors import UsageError
from vivavoce.records.run import Event, RunStarted
from vivavoce.run.execution import Build
from vivavoce.run.experiment import Experiment, Scoring
from vivavoce.run.experiment_run import ExperimentRun
from vivavoce.run.options import RunOptions
from vivavoce.run.regrading import Regrading
from vivavoce.settings import settings
from vivavoce.store.store import Store

from .experiments import asked, experiment, recorded


def built(made: Experiment) -> Build:
    return lambda budget, answers: made


@pytest.mark.parametrize(("made", "passed"), [(experiment(asked(4), trials=2), 0.5), (experiment(recorded(4)), 1.0)])
async def test_what_is_asked_and_what_was_recorded_are_graded_alike(made: Experiment, passed: float) -> None:
    with Store.open(settings().store) as store:
        result = await ExperimentRun(built(made), store).execute()
        assert (result.summary.attempts, result.summary.grader("polite").pass_rate) == (4 * made.trials, passed)
        run = store.run("latest")
    assert (run.suite, run.spec, run.base, run.status) == ("By hand", {"name": "By hand"}, str(Path.cwd()), "finished")
    options: dict[str, object] = {
        "cache": True,
        "replay": False,
        "batch": False,
        "suite": "a test",
        "dataset": "4 samples",
        "code": None,
    }
    options["planned"] = 4 * made.trials
    assert run.options == options


async def test_the_set_up_comes_first_and_its_failure_begins_no_run() -> None:
    seen: list[str] = []

    async def set_up() -> None:
        seen.append("set up")

    class Watcher:
        async def on(self, event: Event) -> None:
            if isinstance(event, RunStarted):
                seen.append("started")

    async def broken() -> None:
        raise UsageError("no database")

    with Store.open(settings().store) as store:
        await ExperimentRun(built(experiment(asked(1), set_up=set_up)), store, listeners=[Watcher()]).execute()
        run = ExperimentRun(built(experiment(asked(1), set_up=broken)), store)
        with pytest.raises(UsageError, match="no database"):
            await run.execute()
        assert (seen, run.begun, len(store.runs())) == (["set up", "started"], None, 1)


async def test_a_run_goes_on_with_the_same_experiment_only() -> None:
    with Store.open(settings().store) as store:
        stopped = await ExperimentRun(built(experiment(asked(6))), store, RunOptions(max_calls=2)).execute()
        assert stopped.run.status == "interrupted"
        other = experiment(asked(5))
        with pytest.raises(UsageError, match=r"cannot resume .*: the dataset 'by hand' has changed since"):
            await ExperimentRun(built(other), store, resumed=stopped.run).execute()
        result = await ExperimentRun(built(experiment(asked(6))), store, resumed=stopped.run).execute()
        assert (result.run.id, result.run.status, result.summary.attempts) == (stopped.run.id, "finished", 6)


async def test_what_was_opened_is_closed_whatever_comes() -> None:
    closed: list[str] = []

    class Opened:
        name = "opened"

        async def close(self) -> None:
            closed.append(self.name)

    scoring = experiment([]).scoring
    made = experiment(asked(1), scoring=Scoring(scoring.graders, opened=(Opened(),)))  # pyright: ignore[reportArgumentType]
    with Store.open(settings().store) as store:
        await ExperimentRun(built(made), store).execute()
        run = store.run("latest").model_copy(update={"options": {"dataset": "another", "code": None}})
        with pytest.raises(UsageError):
            await ExperimentRun(built(made), store, resumed=run).execute()
    assert closed == ["opened", "opened"]


async def test_a_run_is_graded_again_with_the_scoring_of_another_experiment() -> None:
    with Store.open(settings().store) as store:
        first = await ExperimentRun(built(experiment(asked(4))), store).execute()
        again = await Regrading(built(experiment(asked(4))), store, run=first.run).execute()
        assert again.grading.id == f"{first.run.id}-g2"
        assert again.summary.grader("polite") == first.summary.grader("polite")
        other = experiment([one.model_copy(update={"input": "No"}) for one in asked(4)])
        with pytest.raises(UsageError, match="has a different input than in the run"):
            await Regrading(built(other), store, run=first.run).execute()
        assert len(store.gradings(first.run.id)) == 2


def test_nothing_that_runs_an_experiment_loads_the_reader_of_suites() -> None:
    code = (
        "import sys, vivavoce.run.experiment_run, vivavoce.run.regrading\n"
        "assert not [name for name in sys.modules if name.startswith(('vivavoce.suites', 'ruamel'))]"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
