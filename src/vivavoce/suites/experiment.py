"""From a suite to the experiment that it describes, and to a run of that experiment."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from vivavoce.errors import UsageError
from vivavoce.grading.grader import fingerprint
from vivavoce.lazy_names import lazy
from vivavoce.models.cache import Replies
from vivavoce.pacing.limits import Budget
from vivavoce.plugins import load_object
from vivavoce.records.run import Listener, Run
from vivavoce.run.attempt import RECORDED
from vivavoce.run.experiment import Description, Experiment, Limits, Samples, Scripted
from vivavoce.run.experiment_run import ExperimentRun
from vivavoce.run.options import RunOptions
from vivavoce.store.replies import ReplyStore
from vivavoce.store.store import Store
from vivavoce.suites.build import needs_state
from vivavoce.suites.check import check_tester, prepare, tester_of
from vivavoce.suites.hooks import check_setup, run_setup, takes_model
from vivavoce.suites.judges import JudgeOpener
from vivavoce.suites.load import Suite, dump_spec
from vivavoce.suites.plan import IN_ONE_RUN, plan_of
from vivavoce.suites.targets import build_targets, check_rows, has_client, target_limits
from vivavoce.suites.toolbox import code_files
from vivavoce.targets.target import Target
from vivavoce.user_code import hash_code

if TYPE_CHECKING:  # only a run in batches loads them
    from vivavoce.run.batch_questions import BatchQuestions


def suite_run(
    suite: Suite,
    options: RunOptions,
    *,
    store: Store,
    listeners: Sequence[Listener] = (),
    targets: Sequence[Target] = (),
    resumed: Run | None = None,
    retries_errors: bool = False,
    partial_of: Run | None = None,
    run_id: str | None = None,
) -> ExperimentRun:
    """Return a run of a suite, ready to execute; `targets` replace those of the suite, `run_id` names a new run."""
    build = partial(build_experiment, suite, options, targets=targets)
    return ExperimentRun(
        build,
        store,
        options,
        listeners,
        resumed=resumed,
        retries_errors=retries_errors,
        partial_of=partial_of,
        run_id=run_id,
    )


def build_experiment(
    suite: Suite, options: RunOptions, budget: Budget, answers: Replies | None, targets: Sequence[Target] = ()
) -> Experiment:
    """Return the experiment that a suite describes; `targets` replace those of the suite.

    Raises:
        UsageError: the suite, its files or its dataset are wrong.
    """
    plan, spec = plan_of(suite, options), suite.spec
    batches = _batches(options, budget, answers)
    judges = JudgeOpener(budget, answers, options.replay, plan.concurrency, base=suite.base, batches=batches)
    tester = tester_of(suite, judges)
    prepared = prepare(suite, plan, judges, tester.agent.fingerprint if tester else "")
    if tester is not None:
        check_tester(suite, tester)
    plan, draw = prepared.plan, prepared.plan.draw
    samples = Samples(plan.samples, plan.count(prepared.dataset.samples), plan.dataset, spec.dataset.place)
    if draw is not None:
        samples = replace(samples, sampling=draw.sampling, drawn=[*draw.places.values()])
    systems = tuple(targets or build_targets(suite, plan.concurrency))
    if spec.driver != "replay":
        check_rows(suite, systems, prepared.dataset)
    own = {target.name: one for target, one in zip(systems, target_limits(suite, plan.concurrency), strict=False)}
    return Experiment(
        name=spec.name,
        samples=samples,
        scoring=prepared.scoring,
        limits=Limits(plan.concurrency),
        description=Description(
            dump_spec(prepared.suite), suite.base, suite.source, None if targets else code_of(suite)
        ),
        driver=tester or scripted(suite),
        targets=systems,
        own_limits=own,
        trials=plan.trials,
        set_up=set_up_of(suite, systems),
        notes=prepared.suite.notes,
        batches=batches,
    )


def _batches(options: RunOptions, budget: Budget, answers: Replies | None) -> BatchQuestions | None:
    """Return the questions of judges that are asked in batches, None where they are asked directly.

    Raises:
        UsageError: the answers are kept where those of batches cannot be.
    """
    if not options.batch:
        return None
    if not isinstance(answers, ReplyStore):
        raise UsageError(IN_ONE_RUN)
    made: BatchQuestions = lazy("vivavoce.run.batch_questions:BatchQuestions")(budget, answers)
    return made


def scripted(suite: Suite) -> Scripted | None:
    """Return the driver of the conversations, None for recorded ones."""
    if suite.spec.driver == "replay":
        return None
    return Scripted(needs_state(suite.spec.graders, suite.base))


def code_of(suite: Suite) -> str | None:
    """Return a hash of the code under test and of the files that answer tools, None if there are none."""
    files = [file for spec in suite.spec.all_targets.values() for file in code_files(spec)]
    files += [] if suite.spec.recording is None else [suite.spec.recording.path]
    hashes = [hash_code((suite.base / file).resolve()) for file in dict.fromkeys(files)]
    return fingerprint(hashes) if len(hashes) > 1 else next(iter(hashes), None)


def set_up_of(suite: Suite, targets: Sequence[Target]) -> Callable[[], Awaitable[None]] | None:
    """Return the set-up to call once before the first conversation, if the suite names one."""
    reference = suite.spec.setup_script
    if reference is None:
        return None
    function = load_object(reference, suite.base)
    parameters = check_setup(function, reference, has_client=has_client(suite))
    models = {name: model or name for spec in suite.spec.all_targets.values() for name, model in spec.named}
    asks = "client" in parameters
    clients = [
        (getattr(target, "client", None) if asks else None, models.get(target.name, target.name)) for target in targets
    ]
    if asks:
        clients = [(client, name) for client, name in clients if client is not None]
    clients = clients or [(None, RECORDED)]

    async def set_up() -> None:
        for client, name in clients if takes_model(parameters) else clients[:1]:
            await run_setup(function, parameters, client, name)

    return set_up
