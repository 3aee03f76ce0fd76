"""`viva test`: one test by the autonomous tester, showing the conversation live."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated, Any, TypeVar, cast

import typer
from rich.console import Console

from vivavoce.cli.options import CostOption, MaxErrorsOption, NoCacheOption, ReplayOption
from vivavoce.cli.output import StoreOption, notes, out, print_json, store_of
from vivavoce.cli.progress import RunProgress
from vivavoce.cli.runner import report_run
from vivavoce.comparing.json_values import parse
from vivavoce.errors import UsageError
from vivavoce.penelope.result import read_test
from vivavoce.records.redaction import keys_of_environment
from vivavoce.records.run import AttemptEnded, AttemptStarted, Event, TurnEnded
from vivavoce.records.score import to_number
from vivavoce.records.trajectory import Explore, Trajectory, Turn
from vivavoce.report.tester import ending, try_title
from vivavoce.report.text import one_line
from vivavoce.report.transcript import exchange
from vivavoce.run.execution import execute
from vivavoce.run.options import RunOptions
from vivavoce.run.summary import RunResult
from vivavoce.store.store import Store
from vivavoce.suites.command_line import GRADERS, read_target, testing_suite
from vivavoce.suites.document import read_document
from vivavoce.suites.experiment import suite_run
from vivavoce.suites.metric_names import metric_graders, read_metrics

Target = Annotated[str, typer.Option(help="The system under test: file.py:function or http://host/v1#MODEL.")]
Goal = Annotated[str, typer.Option(help="The goal of the conversation.")]
TesterName = Annotated[
    str | None, typer.Option(help="The model that plays the user, or file.py:name; default: VIVAVOCE_TESTER.")
]
JudgeName = Annotated[
    str | None,
    typer.Option(help="The model that judges, or file.py:name; default: VIVAVOCE_JUDGE, else the tester model."),
]
PersonaName = Annotated[
    str | None,
    typer.Option(
        help="The user that the tester plays: a name (viva validate list personas), a description, or a JSON object."
    ),
]
Facts = Annotated[
    list[str] | None,
    typer.Option(help="A fact that the user gives when the target asks, such as 'order number=1042'; repeat for more."),
]
Data = Annotated[
    Path | None,
    typer.Option(help="A YAML or JSON file of facts, as name: value; --fact adds to them."),
]
Restrictions = Annotated[list[str] | None, typer.Option(help="Something the tester must not do; repeat for more.")]
Must = Annotated[list[str] | None, typer.Option(help="Something the target must do; repeat for more.")]
MustNot = Annotated[list[str] | None, typer.Option(help="Something the target must never do; repeat for more.")]
Context = Annotated[str | None, typer.Option(help="Background for the tester and the judges: a text or a JSON object.")]
Policy = Annotated[
    str | None,
    typer.Option(
        help="The rules that the target must follow: a text, or @FILE. Only judges see them, never the tester or "
        "the target."
    ),
]
Adversarial = Annotated[
    bool | None,
    typer.Option(
        "--adversarial/--no-adversarial",
        help="Whether the target should resist the goal; default: as the strategy says.",
        show_default=False,
    ),
]
Openings = Annotated[
    list[str] | None, typer.Option(help="The first message of the tester, word for word; repeat for more messages.")
]
StrategyName = Annotated[str, typer.Option(help="The strategy of the tester; see: viva validate list strategies.")]
Graph = Annotated[Path | None, typer.Option(help="A YAML file with a state graph, instead of a strategy.")]
Instructions = Annotated[str | None, typer.Option(help="Instructions for the tester: how to lead the conversation.")]
ExploreName = Annotated[
    Explore, typer.Option(help="Once the goal is reached: 'goal' ends the test, 'rules' tries to break rules.")
]
Metrics = Annotated[
    list[str] | None,
    typer.Option(help="An additional metric: a name, or {metric: NAME, threshold: 0.9}; repeat for more."),
]
Json = Annotated[
    bool, typer.Option("--json", help="Print the result as JSON; the conversation goes to standard error.")
]

_Record = TypeVar("_Record", Turn, Trajectory)


def command(
    *,
    target: Target,
    goal: Goal,
    tester: TesterName = None,
    judge: JudgeName = None,
    instructions: Instructions = None,
    scenario: Annotated[str | None, typer.Option(help="The situation of the user.")] = None,
    context: Context = None,
    policy: Policy = None,
    persona: PersonaName = None,
    fact: Facts = None,
    data: Data = None,
    restriction: Restrictions = None,
    must: Must = None,
    must_not: MustNot = None,
    opening: Openings = None,
    adversarial: Adversarial = None,
    strategy: StrategyName = "improvise",
    graph: Graph = None,
    metric: Metrics = None,
    max_turns: Annotated[int, typer.Option(min=1, help="Maximum number of turns.")] = 20,
    min_turns: Annotated[int, typer.Option(min=0, help="Minimum number of turns.")] = 0,
    explore: ExploreName = "goal",
    timeout: Annotated[float | None, typer.Option(min=0.001, help="Maximum duration of the test, in seconds.")] = None,
    trials: Annotated[int, typer.Option(min=1, help="Number of trials; gives pass@k and pass^k.")] = 1,
    max_calls: Annotated[
        int | None, typer.Option(min=0, help="Maximum number of calls to the tester, the target and judges.")
    ] = None,
    max_cost: CostOption = None,
    max_errors: MaxErrorsOption = None,
    no_cache: NoCacheOption = False,
    replay: ReplayOption = False,
    as_json: Json = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Show only the verdict.")] = False,
    store: StoreOption = None,
) -> None:
    """Test one goal: a tester model talks to the target as a user would, and a judge decides whether the target passed.

    viva test --target bot.py:reply --goal "Get order 1042 refunded" --tester openai:gpt-4.1-mini

    The conversation is shown live. The results are stored in .vivavoce/vivavoce.db, as for every run. Exit codes: 0 the
    target passed, 1 it failed, 2 wrong usage, 3 inconclusive, 130 interrupted.
    """
    row = {"goal": goal, "instructions": instructions, "scenario": scenario, "persona": persona, "input": opening}
    row |= {"context": None if context is None else _context(context), "adversarial": adversarial}
    row |= {"policy": None if policy is None else _text(policy, "--policy")}
    row |= {"facts": _facts(fact or [], data), "restrictions": restriction, "must": must, "must_not": must_not}
    script = None if graph is None else read_document(graph, kind="graph", keys="nodes and start").data
    how = {"model": tester, "judge": judge, "strategy": strategy, "graph": script, "test_timeout": timeout}
    how |= {"max_turns": max_turns, "min_turns": min_turns, "explore": explore}
    suite = testing_suite(
        read_target(target), _nonempty(row), _nonempty(how), _metrics(metric or [], judge), Path.cwd()
    )
    options = RunOptions(
        trials=trials,
        max_concurrent=1,
        max_calls=max_calls,
        max_cost=max_cost,
        max_errors=max_errors,
        cache=not no_cache,
        replay=replay,
    )
    with Store.open(store_of(store)) as opened:
        watcher = _Watcher(notes() if as_json else out(), quiet)
        run = suite_run(suite, options, store=opened, listeners=[watcher])
        result = execute(run, lambda: RunProgress(notes()).interrupted(run.stop()))
        _report(opened, result, as_json, quiet, ["--store", store] if store else [])
    raise typer.Exit(result.exit_code)


def _metrics(texts: list[str], judge: str | None) -> dict[str, dict[str, Any]]:
    """Return the graders of the metrics that are measured besides.

    Raises:
        UsageError: a metric cannot be read, two have the same name, or one has the name of a grader of every test.
    """
    named = [metric for text in texts for metric in read_metrics(text)]
    graders = metric_graders(named, **({"model": judge} if judge else {}))
    if taken := sorted(graders.keys() & GRADERS.keys()):
        raise UsageError(f"--metric: '{taken[0]}' is the name of a built-in grader; give the metric another name")
    return graders


def _report(store: Store, result: RunResult, as_json: bool, quiet: bool, options: list[str]) -> None:
    """Print what the live conversation has not shown yet."""
    if as_json:
        _print_json(store, result)
        return
    plain = len(result.summary.graders) == len(GRADERS) and result.summary.attempts == 1
    if not plain or result.stopped_by is not None:
        report_run(store, result, None, options)
    if not quiet:
        notes().print(f"show it again with: {shlex.join(['viva', 'show', result.run.id, 'test', *options])}")


class _Watcher:
    """Shows a conversation live, and its result at the end."""

    def __init__(self, console: Console, quiet: bool) -> None:
        self._console, self._quiet = console, quiet
        self._keys = keys_of_environment()
        self._tries = 0

    async def on(self, event: Event) -> None:
        """Take one event."""
        if isinstance(event, AttemptStarted):
            self._tries = 0
            if event.key.trial and not self._quiet:
                self._console.print(f"── trial {to_number(event.key.trial)}", style="dim")
        elif isinstance(event, TurnEnded) and not self._quiet:
            if event.turn.index == 0 and self._tries:
                again = f"{try_title(self._tries)}: the tester spoilt {try_title(self._tries - 1)}, which is discarded"
                self._console.print(f"── {again}", style="bold")
            self._tries += event.turn.index == 0
            self._console.print(exchange(self._without_keys(event.turn)))
        elif isinstance(event, AttemptEnded):
            talk = self._without_keys(event.outcome.attempt.trajectory)
            if talk.test is None and talk.failure is not None:
                self._console.print(one_line(str(talk.failure), 400))
            for line in ending(talk.test) if talk.test else ():
                self._console.print(line)

    def _without_keys(self, record: _Record) -> _Record:
        """Return a record without keys, as the store keeps it."""
        text = record.model_dump_json()
        return type(record).model_validate_json(self._keys.cut(text)) if self._keys.are_in(text) else record


def _print_json(store: Store, result: RunResult) -> None:
    """Print a test as a JSON object, several tests as one object per line."""
    alone = result.summary.attempts == 1
    for outcome in store.outcomes(result.grading.id):
        talk = outcome.attempt.trajectory
        if talk.test is not None:
            print_json(read_test(talk.test, talk).model_dump_json(indent=2 if alone else None, exclude_none=True))


def _nonempty(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value not in (None, [], {})}


def _context(text: str) -> str | dict[str, Any]:
    if not text.lstrip().startswith("{"):
        return text
    try:
        return cast("dict[str, Any]", parse(text))
    except ValueError as error:
        raise UsageError(f"--context is not a JSON object: {error}") from error


def _text(value: str, option: str) -> str:
    """Return a text, or that of the file named after an @.

    Raises:
        UsageError: the file cannot be read, or there is no text.
    """
    text = _read(Path(value[1:]), option) if value.startswith("@") else value
    if not text.strip():
        what = f"'{value[1:]}'" if value.startswith("@") else "the text"
        raise UsageError(f"{option}: {what} is empty")
    return text


def _read(path: Path, option: str) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(f"{option}: '{path}' is not UTF-8") from error
    except OSError as error:
        raise UsageError(f"{option}: '{path}' cannot be read: {error.strerror or error}") from error


def _facts(options: list[str], file: Path | None) -> dict[str, str]:
    """Return the facts of a file and of options, which have precedence.

    Raises:
        UsageError: the file cannot be read, or one of them is not a fact.
    """
    facts = {} if file is None else _facts_of(file)
    for option in options:
        name, _, value = option.partition("=")
        if not name.strip() or not value.strip():
            raise UsageError(f"--fact {option}: write it as 'order number=1042'")
        facts[name.strip()] = value.strip()
    return facts


def _facts_of(file: Path) -> dict[str, str]:
    found = read_document(file, kind="file of facts", keys="order number and email").data
    for name, value in found.items():
        if isinstance(value, bool | None) or not isinstance(value, str | int | float) or not str(value).strip():
            raise UsageError(f"--data {file}: '{name}' is not a text or a number")
    return {name: str(value).strip() for name, value in found.items()}
