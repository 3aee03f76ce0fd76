"""`viva`: the commands, each loaded only when it is called."""

from __future__ import annotations

import os
import signal
import sys
import threading
import traceback
import warnings
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from io import TextIOWrapper
from itertools import pairwise
from types import FrameType
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup, TyperOption

from vivavoce.cli import RUN
from vivavoce.cli.standard_streams import drop_unwritten, open_closed_streams
from vivavoce.errors import UsageError, VivavoceError, did_you_mean
from vivavoce.extensions import Command, PluginWarning, plugins
from vivavoce.lazy_names import lazy

PROBLEMS_SHOWN = 20
"""Mistakes that a command lists."""

COMMANDS = {
    "run": "Run a suite: hold its conversations and grade them.",
    "test": "Test one goal: a tester model talks to your target.",
    "judge": "Measure recorded conversations with metrics.",
    "merge": "Make one run of the parts that several processes worked on.",
    "scenarios": "Write test scenarios from a description or from recordings.",
    "grade": "Grade the stored conversations of a run again.",
    "show": "Show a run, or one of its conversations.",
    "serve": "Start a server with the API and the pages.",
    "view": "Open the pages in a browser, on this machine only.",
    "runs": "List the stored runs, newest first.",
    "jobs": "List the jobs of servers, or cancel one.",
    "batches": "List what is with batch services, or cancel it.",
    "note": "Give a run a title, notes and tags.",
    "search": "Find words in all conversations, reasons and runs.",
    "capture": "Make a row of a dataset of a stored conversation.",
    "dataset": "Keep versions of a dataset, and show what changed.",
    "convert": "Write conversations of one format in another.",
    "export": "Write a run to a file for another program.",
    "publish": "Send a run to Langfuse, Phoenix, OpenTelemetry, MLflow, W&B.",
    "labels": "Export people's labels, or compare a judge with them.",
    "metrics": "Test metrics with known defects in good conversations.",
    "cache": "Show, export or import cached replies of models.",
    "store": "Maintain the store: migrate, backup, restore, gc, copy.",
    "token": "Create, list and revoke the tokens for a server.",
    "init": "Write a suite that runs as it is, with a bot and a workflow.",
    "validate": "Check a suite and its dataset without running it.",
    "plan": "Say how many samples, trials and labels show a change.",
    "list": "List the names a suite can use: graders, metrics, and more.",
    "schema": "Print the JSON Schema of a suite or its rows, for editors.",
    "doctor": "Check what is installed on this machine and what is missing.",
}
"""The commands of the core, in the order in which people need them."""
_FILES = {"list": "names"}


@cache
def commands() -> dict[str, Command]:
    """Return all commands by name, those of plugins included, in the order in which they are listed."""
    listed = {name: Command(text, f"vivavoce.cli.{_FILES.get(name, name)}:command") for name, text in COMMANDS.items()}
    for plugin, added in list(plugins().results("register_commands")):
        if twice := sorted(added.keys() & listed.keys()):
            plugins().switch_off(plugin, f"it adds the command '{twice[0]}', which exists")
            continue
        for name, command in added.items():
            listed = _inserted(listed, name, command)
    return listed


def _inserted(listed: dict[str, Command], name: str, command: Command) -> dict[str, Command]:
    names = list(listed)
    place = names.index(command.after) + 1 if command.after in listed else len(names)
    return {each: listed.get(each, command) for each in (*names[:place], name, *names[place:])}


class LazyGroup(TyperGroup):
    """Commands whose modules are imported when they are called, so that `viva --help` is quick."""

    def list_commands(self, ctx: typer.Context) -> list[str]:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Return the commands in the order people need them."""
        return list(commands())

    def get_command(self, ctx: typer.Context, cmd_name: str) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Return a command with its name and one line of help, which is all that the list of commands shows."""
        return TyperCommand(cmd_name, help=commands()[cmd_name].help) if cmd_name in commands() else None

    def resolve_command(self, ctx: typer.Context, args: list[str]) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Load the command that is called."""
        name = args[0]
        if name not in commands():
            ctx.fail(f"no command '{name}'{did_you_mean(name, commands())}")
        return name, load_command(name), args[1:]


class OnceCommand(TyperCommand):
    """A command that refuses an option given twice, unless it takes several values.

    An option for a run may stand alone, and then means the latest.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the options; an option given twice is refused, because its first value would be lost."""
        args = list(_with_latest(args, {name for one in self.params if _may_stand_alone(one) for name in one.opts}))
        *_, order = self.make_parser(ctx).parse_args(list(args))
        seen = [one.opts[-1] for one in order if isinstance(one, TyperOption) and _takes_one(one)]
        if twice := [name for name in dict.fromkeys(seen) if seen.count(name) > 1]:
            ctx.fail(f"{twice[0]} is given twice, but takes one value")
        return super().parse_args(ctx, args)


def _may_stand_alone(option: Any) -> bool:
    return option.metavar == RUN


def _with_latest(args: list[str], alone: set[str]) -> Iterator[str]:
    """Yield arguments with `latest` after an option that stands alone: at the end, before another one or a suite."""
    for here, following in pairwise([*args, "-"]):
        yield here
        if here in alone and (following.startswith("-") or following.endswith((".yaml", ".yml"))):
            yield "latest"


def _takes_one(option: TyperOption) -> bool:
    return not (option.multiple or option.count or option.is_flag)


def load_command(name: str) -> Any:
    """Return a command from its own module."""
    single = typer.Typer(add_completion=False, rich_markup_mode=None)
    function = lazy(commands()[name].function)
    single.command(name, cls=OnceCommand, help=function.__doc__)(function)
    return typer.main.get_command(single)


app = typer.Typer(
    name="viva",
    cls=LazyGroup,
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="Test and grade multi-turn conversations with AI systems.",
    epilog="Start with: viva init, then viva run suite.yaml. Exit codes: 0 pass, 1 a gate failed, "
    "2 wrong usage or configuration, 3 inconclusive, 130 interrupted.",
)


@app.callback(invoke_without_command=True)
def callback(
    context: typer.Context,
    version: bool = typer.Option(False, "--version", help="Print the version and exit."),
) -> None:
    """Test and grade multi-turn conversations with AI systems."""
    if version:
        typer.echo(lazy("vivavoce:__version__"))
        raise typer.Exit
    if context.obj is OWN_PROCESS:
        lazy("vivavoce.pacing.file_handles:raise_handle_limit")()
        if (note := lazy("vivavoce.pacing.file_handles:few_handles_note")(_MANY_CONVERSATIONS)) is not None:
            _complain(f"note: {note}")


OWN_PROCESS = object()
"""What the context of a command holds where the command line is the whole process, so that its limits may be raised."""

_MANY_CONVERSATIONS = 15
"""Conversations that a suite holds at a time unless it says otherwise."""

_PATIENCE = 2.0
"""Seconds for threads to end when the program does."""


def main(arguments: list[str] | None = None) -> None:
    """Run the command line; a user's mistake is one line and exit code 2, never a traceback."""
    if arguments is None:
        open_closed_streams()
        _end_on_hangup()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal that knows no … still gets the rest
    warnings.showwarning = _show_warning
    try:
        code = _run(arguments)
        sys.stdout.flush()
    except BrokenPipeError:
        code = 0
    except OSError as error:
        _complain(f"cannot write the output: {error.strerror or error}")
        code = 2
    if arguments is None and (left := _threads_left()):
        _complain(f"what was tested left threads running, which are not waited for: {', '.join(left)}")
        drop_unwritten()
        os._exit(code)
    drop_unwritten()
    sys.exit(code)


def _end_on_hangup() -> None:
    """Treat the end of a terminal like a request to end; `nohup`, which ignores it, stays in force."""
    hangup = getattr(signal, "SIGHUP", None)  # Windows has none
    if hangup is not None and signal.getsignal(hangup) is signal.SIG_DFL:
        signal.signal(hangup, _end)


def _end(_number: int, _frame: FrameType | None) -> None:
    signal.raise_signal(signal.SIGTERM)


def _threads_left() -> list[str]:
    """Return the names of threads for whose end Python would wait, and which do not end."""
    busy = [one for one in threading.enumerate() if one is not threading.main_thread() and _is_waited_for(one)]
    for one in busy:
        one.join(_PATIENCE / len(busy))
    return [one.name for one in busy if one.is_alive() and _is_waited_for(one)]


def _is_waited_for(thread: threading.Thread) -> bool:
    """Return whether Python waits for the end of a thread; of a pool it waits also for daemons, which end when idle."""
    top = frame = sys._current_frames().get(thread.ident or 0)  # pyright: ignore[reportPrivateUsage]
    while frame is not None:
        if frame.f_code.co_name == "_worker" and frame.f_globals.get("__name__") == "concurrent.futures.thread":
            return frame is not top
        frame = frame.f_back
    return not thread.daemon


def _run(arguments: list[str] | None) -> int:
    try:
        app(arguments, obj=OWN_PROCESS if arguments is None else None)
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else 3 if ended.code else 0
    except UsageError as error:
        for problem in error.problems[:PROBLEMS_SHOWN]:
            _complain(problem)
        if (more := len(error.problems) - PROBLEMS_SHOWN) > 0:
            _complain(f"and {more:,} more; viva validate lists every mistake of a suite")
        return 2
    except VivavoceError as error:
        _complain(error)
        return 3
    except (OSError, KeyboardInterrupt):
        raise
    except BaseException:
        _complain(traceback.format_exc())
        _complain("this is a bug in vivavoce, not in your suite; there is no verdict")
        return 3
    return 0


_show_other_warning = warnings.showwarning


def _show_warning(message: Warning | str, category: type[Warning], *place: Any, **more: Any) -> None:
    """Show that a plugin is switched off in one line, and other warnings as Python does."""
    if issubclass(category, PluginWarning):
        _complain(message)
    else:
        _show_other_warning(message, category, *place, **more)


def _complain(error: object) -> None:
    with suppress(OSError):  # a message that nobody can read changes no exit code
        lazy("vivavoce.cli.output:complain")(error)


if __name__ == "__main__":
    main()
