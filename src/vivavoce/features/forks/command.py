"""`viva runs fork`: go on from a turn of a stored conversation, or find the turn at which it went wrong."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from vivavoce.cli.options import CallsOption, ConversationArgument, CostOption, NoCacheOption, ReplayOption
from vivavoce.cli.output import StoreOption, existing, notes, out, print_json, print_lines, store_of
from vivavoce.cli.progress import RunProgress, execute
from vivavoce.errors import UsageError
from vivavoce.features.forks.experiment import ForkRequest, fork_run, run_targets
from vivavoce.features.forks.report import Forked, fork_report, read_fork
from vivavoce.records.run import Outcome, Run
from vivavoce.records.score import to_index
from vivavoce.report.capture import find_conversation
from vivavoce.report.graded_run import continuing
from vivavoce.report.text import record_json
from vivavoce.run.options import RunOptions
from vivavoce.run.summary import RunResult
from vivavoce.run.workers import INTERRUPTED
from vivavoce.store.store import Store

TRIALS, IN_ALL = 10, 100
"""How many continuations there are of one turn, and at most of all, where nobody says."""


def command(
    conversation: ConversationArgument,
    *,
    turn: Annotated[
        int | None, typer.Option(min=1, help="Replay the conversation from this turn; default: find the turn.")
    ] = None,
    user: Annotated[
        str | None, typer.Option(metavar="TEXT", help="The user's message in that turn, instead of the original.")
    ] = None,
    assistant: Annotated[
        str | None, typer.Option(metavar="TEXT", help="The target's reply in that turn, instead of the original.")
    ] = None,
    trials: Annotated[
        int | None,
        typer.Option(
            min=1,
            help=f"Number of replays; default: {TRIALS} of one turn, at most {IN_ALL} when searching for the turn.",
        ),
    ] = None,
    target: Annotated[
        str | None,
        typer.Option(
            help="The target for the replays: one from the run, or file.py:function or http://host/v1#MODEL.",
            show_default=False,
        ),
    ] = None,
    grader: Annotated[
        str | None, typer.Option(help="The grader that decides success; default: the one that failed.")
    ] = None,
    suite: Annotated[
        Path | None, typer.Option(help="Use the target and graders of this suite; default: the run's.")
    ] = None,
    max_concurrent: Annotated[int | None, typer.Option(min=1, help="Maximum concurrent conversations.")] = None,
    max_calls: CallsOption = None,
    max_cost: CostOption = None,
    no_cache: NoCacheOption = False,
    replay: ReplayOption = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Show only the result, without progress.")] = False,
    store: StoreOption = None,
) -> None:
    """Replay a stored conversation from one of its turns several times, and report how often it succeeds.

    Without --turn, the command searches for the turn at which the success rate dropped: it replays from different
    turns, as often as needed, until one turn stands out or --trials is reached. A replay succeeds when it passes
    the grader that the original conversation failed. The replays are stored as a run, which is never a baseline.

    Earlier turns are taken from the original. A target that keeps the conversation itself receives the user's earlier
    messages again; if it answers differently, the replay is counted separately.
    """
    _check(turn, user, assistant)
    number = trials or (IN_ALL if turn is None else TRIALS)
    file = None if suite is None else existing(suite)
    request = ForkRequest(None if turn is None else to_index(turn), user, assistant, number, grader, target, file)
    options = RunOptions(
        max_concurrent=max_concurrent, max_calls=max_calls, max_cost=max_cost, cache=not no_cache, replay=replay
    )
    progress = RunProgress(notes(), quiet)
    with Store.open(store_of(store), create=False) as opened:
        run, outcome = _conversation(opened, conversation, target)
        work = fork_run(run, outcome, request, options, store=opened, listeners=[progress])
        result = execute(work, progress)
        fork = read_fork(opened, opened.run(result.run.id))
    _show(result, fork, ["--store", store] if store else [], as_json=as_json)
    raise typer.Exit(_exit_code(result, fork))


def _check(turn: int | None, user: str | None, assistant: str | None) -> None:
    """Refuse options that do not go together."""
    if user is not None and assistant is not None:
        raise UsageError("--user and --assistant cannot be combined: change one side of a turn")
    for option, text in (("--user", user), ("--assistant", assistant)):
        if text is not None and turn is None:
            raise UsageError(f"{option} needs --turn, the turn of the new message")
        if text is not None and not text.strip():
            raise UsageError(f"{option} is empty; write a message")


def _conversation(store: Store, name: str, target: str | None) -> tuple[Run, Outcome]:
    """Return a conversation and its run; a target of the run says which of its conversations is meant."""
    run, outcome = find_conversation(store, name)
    return find_conversation(store, name, target) if target in run_targets(run, outcome) else (run, outcome)


def _show(result: RunResult, fork: Forked, options: list[str], *, as_json: bool) -> None:
    for note in result.notes:
        notes().print(note, style="dim")
    if as_json:
        print_json(record_json(fork))
        return
    console = out()
    print_lines(fork_report(fork))
    if result.stopped_by is not None:
        console.print(continuing(result.run, options))
    console.print(f"see the replays with: {shlex.join(['viva', 'show', result.run.id, *options])}")


def _exit_code(result: RunResult, fork: Forked) -> int:
    """Return 0 where something was found out, 3 where not, 130 where it was interrupted."""
    if result.stopped_by == INTERRUPTED:
        return 130
    scored = any(place.scored for place in fork.places)
    return 0 if scored and result.stopped_by is None and fork.answer != "unknown" else 3
