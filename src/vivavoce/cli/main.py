"""`viva`: which commands there are, how they are grouped, and how each is loaded when it is called."""

from __future__ import annotations

import os
import signal
import sys
import threading
import traceback
import warnings
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import cache
from io import TextIOWrapper
from itertools import pairwise
from types import FrameType
from typing import Any, TextIO

import typer
from typer.core import TyperCommand, TyperGroup, TyperOption

from vivavoce.cli import RUN
from vivavoce.errors import UsageError, VivavoceError, did_you_mean
from vivavoce.extensions import Command, PluginWarning, plugins
from vivavoce.lazy_names import lazy

PANELS: Mapping[str, Mapping[str, str]] = {
    "Test": {
        "run": "Run a suite: its conversations, graders and gate.",
        "test": "Test one goal: a tester model talks to your target.",
        "judge": "Measure recorded conversations with metrics.",
        "validate": "Check a suite and its dataset without running it.",
        "init": "Write a first suite, with a bot and a workflow for CI.",
    },
    "Results": {
        "show": "Show a run, or one of its conversations.",
        "runs": "List the stored runs, newest first.",
        "view": "Open the pages in a browser, on this machine only.",
        "export": "Write a run to a file for another program.",
    },
    "Trust": {},
    "Data": {
        "dataset": "Keep versions of a dataset, and show what changed.",
        "scenarios": "Write test scenarios from a description or recordings.",
    },
    "Operate": {
        "serve": "Start a server with the API and the pages.",
        "store": "Maintain the store: migrate, backup, restore, gc, copy.",
    },
}
"""The commands of the core by what they are for, those that most people need first; features add to the panels."""

PLUGINS = "Plugins"
"""The panel of the commands that installed packages add."""

PARTS: Mapping[str, Mapping[str, str]] = {
    "validate": {
        "list": "List the names a suite can use: graders, metrics, and more.",
        "schema": "Print the JSON Schema of a suite or its rows, for editors.",
        "doctor": "Check what is installed on this machine and what is missing.",
    },
    "runs": {
        "grade": "Grade the stored conversations of a run again.",
        "note": "Give a run a title, notes and tags.",
        "search": "Search all conversations, reasons and runs.",
    },
    "dataset": {"capture": "Turn a stored conversation into a dataset row."},
    "serve": {"jobs": "List the jobs of servers, or cancel one."},
    "store": {
        "token": "Create, list and revoke the tokens for a server.",
        "cache": "Show, export or import cached model replies.",
    },
}
"""The commands of the core that are parts of others, as in `viva store token`; each can be called without the other."""

_FUNCTIONS = {
    "list": "names:command",
    "view": "serve:view",
    "jobs": "serve:jobs",
    "note": "runs:note",
    "capture": "dataset:capture_conversation",
    "token": "store:token",
    "cache": "store:cache",
}
"""The functions of commands that are not alone in a module of their name."""


@cache
def commands() -> Mapping[str, Command]:
    """Return all commands by their own name, those of plugins last."""
    listed = {
        name: Command(text, f"vivavoce.cli.{_FUNCTIONS.get(name, f'{name}:command')}", of=whole, panel=panel)
        for whole, panel, texts in (
            *((None, panel, texts) for panel, texts in PANELS.items()),
            *((whole, None, texts) for whole, texts in PARTS.items()),
        )
        for name, text in texts.items()
    }
    for plugin, added in list(plugins().results("register_commands")):
        if twice := sorted(added.keys() & listed.keys()):
            plugins().switch_off(plugin, f"it adds the command '{twice[0]}', which exists")
            continue
        listed |= added
    return listed


def panels() -> dict[str, list[str]]:
    """Return the names of the commands that are listed, by panel; the parts of others are not."""
    shown: dict[str, list[str]] = {panel: [] for panel in (*PANELS, PLUGINS)}
    for name, command in commands().items():
        if not _whole_of(command):
            _insert(name, command, shown[command.panel if command.panel in shown else PLUGINS])
    return {panel: names for panel, names in shown.items() if names}


def parts_of(whole: str) -> dict[str, Command]:
    """Return the commands that are parts of another, by name."""
    names: list[str] = []
    for name, command in commands().items():
        if _whole_of(command) == whole:
            _insert(name, command, names)
    return {name: commands()[name] for name in names}


def _insert(name: str, command: Command, names: list[str]) -> None:
    """Insert the name of a command where it is listed."""
    names.insert(names.index(command.before) if command.before in names else len(names), name)


def full_name(name: str) -> str:
    """Return what to type for a command after `viva`, as in `store token`."""
    whole = _whole_of(commands()[name])
    return f"{whole} {name}" if whole else name


def own_name(name: str) -> str | None:
    """Return the name of a command, by that or by a former one; None where there is none."""
    if name in commands():
        return name
    return next((each for each, command in commands().items() if command.former_name == name), None)


def _whole_of(command: Command) -> str | None:
    """Return the command that another one is a part of; None where that is not there."""
    return command.of if command.of in commands() else None


PROBLEMS_SHOWN = 20
"""Mistakes that a command lists."""

COMMON_OPTIONS: Mapping[str, frozenset[str]] = {
    "run": frozenset(
        ("target", "trials", "max_samples", "sample", "max_cost", "dry_run", "failed", "resume", "quiet", "store")
    )
}
"""The options that the help of a command shows; `--help-all` shows all of them. Other commands show all."""


class LazyGroup(TyperGroup):
    """Commands whose modules are imported when they are called, so that `viva --help` is quick."""

    def list_commands(self, ctx: typer.Context) -> list[str]:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Return the commands that are listed, in the order people need them."""
        return [name for names in panels().values() for name in names]

    def get_command(self, ctx: typer.Context, cmd_name: str) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Return a command with its name and one line of help, which is all that the list of commands shows."""
        return TyperCommand(cmd_name, help=commands()[cmd_name].help) if cmd_name in commands() else None

    def format_commands(self, ctx: typer.Context, formatter: Any) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Write the commands, panel by panel."""
        width = max(map(len, panels()))
        with formatter.section("Commands"):
            formatter.write_dl(
                [
                    (f"{'' if place else panel:<{width}}  {name}", commands()[name].help)
                    for panel, names in panels().items()
                    for place, name in enumerate(names)
                ]
            )

    def resolve_command(self, ctx: typer.Context, args: list[str]) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Load the command that is called, by its own name, or by that of the command that it is a part of."""
        name = own_name(args[0])
        if name is None:
            ctx.fail(f"no command '{args[0]}'{did_you_mean(args[0], commands())}")
        rest = args[1:]
        if rest and rest[0] in parts_of(name):
            name, rest = rest[0], rest[1:]
        return full_name(name), load_command(name), rest


class OnceCommand(TyperCommand):
    """A command that refuses an option given twice, unless it takes several values.

    An option for a run may stand alone, and then means the latest. The help lists the commands that are parts of it,
    and only the options that are `common`, if any are named; `--help-all` shows all of them.
    """

    parts: Mapping[str, Command] = {}
    common: frozenset[str] | None = None

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the arguments and the options that the help shows, and where the others are."""
        rare = [each for each in self.params if isinstance(each, TyperOption) and each.name not in (self.common or ())]
        if self.common is None or not rare:
            super().format_options(ctx, formatter)
            return
        for option in rare:
            option.hidden = True
        super().format_options(ctx, formatter)
        for option in rare:
            option.hidden = False
        formatter.write_paragraph()
        formatter.write_text(f"{ctx.command_path} --help-all shows {len(rare)} more options.")

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Write the commands that are parts of this one."""
        super().format_epilog(ctx, formatter)
        if self.parts:
            with formatter.section("Commands"):
                formatter.write_dl([(f"{ctx.command_path} {name}", part.help) for name, part in self.parts.items()])

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the options; an option given twice is refused, because its first value would be lost."""
        if "--help-all" in args and self.common is not None:
            self.common = None
            typer.echo(ctx.get_help(), color=ctx.color)
            ctx.exit()
        args = list(
            _with_latest(args, {name for param in self.params if _may_stand_alone(param) for name in param.opts})
        )
        *_, order = self.make_parser(ctx).parse_args(list(args))
        seen = [one.opts[-1] for one in order if isinstance(one, TyperOption) and _takes_one(one)]
        if twice := [name for name in dict.fromkeys(seen) if seen.count(name) > 1]:
            ctx.fail(f"{twice[0]} was given twice; it takes one value")
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
    single.command(full_name(name), cls=OnceCommand, help=function.__doc__)(function)
    command = typer.main.get_command(single)
    assert isinstance(command, OnceCommand)
    command.parts = parts_of(name)
    command.common = COMMON_OPTIONS.get(name)
    return command


app = typer.Typer(
    name="viva",
    cls=LazyGroup,
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="Test and grade multi-turn conversations with AI systems.",
    epilog="Start with: viva init, then viva run suite.yaml. Exit codes: 0 passed, 1 failed, "
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
        lazy("vivavoce.pacing.limits:raise_handle_limit")()
        lazy("vivavoce.pacing.limits:check_handle_limit")()
        if (note := lazy("vivavoce.pacing.limits:few_handles_note")(_MANY_CONVERSATIONS)) is not None:
            _complain(f"note: {note}")


OWN_PROCESS = object()
"""What the context of a command holds where the command line is the whole process, so that its limits may be raised."""

_MANY_CONVERSATIONS = 15
"""Conversations that a suite holds at a time unless it says otherwise."""

_PATIENCE = 2.0
"""Seconds for threads to end when the program does."""

_STREAMS = ("stdin", "stdout", "stderr")


def main(arguments: list[str] | None = None) -> None:
    """Run the command line; a user's mistake is one line and exit code 2, never a traceback."""
    if arguments is None:
        _open_closed_streams()
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
        if lazy("vivavoce.pacing.limits:lacks_handle")(error):
            _complain(lazy("vivavoce.pacing.limits:too_few_handles")())
        else:
            _complain(f"cannot write the output: {error.strerror or error}")
        code = 2
    if arguments is None and (left := _threads_left()):
        _complain(f"what was tested left threads running, which are not waited for: {', '.join(left)}")
        _drop_unwritten()
        os._exit(code)
    _drop_unwritten()
    sys.exit(code)


def _open_closed_streams() -> None:
    """Open the null device in place of each standard stream that is closed.

    Otherwise the next file, such as the store, would get its number, and what is printed would go into that file.
    """
    for number, name in enumerate(_STREAMS):
        try:
            os.fstat(number)
        except OSError:
            mode, flags = ("r", os.O_RDONLY) if number == 0 else ("w", os.O_WRONLY)
            os.open(os.devnull, flags)  # it gets the lowest free number, which is this one
            if not _leads_elsewhere(getattr(sys, name), number):
                setattr(sys, name, os.fdopen(number, mode, encoding="utf-8", closefd=False))


def _drop_unwritten() -> None:
    """Drop output that cannot be written; otherwise Python tries it again when it ends, and changes the exit code."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _leads_elsewhere(stream: TextIO | None, number: int) -> bool:
    """Return whether a stream is open, and not the standard stream of this number."""
    if stream is None or stream.closed:
        return False
    try:
        return stream.fileno() != number
    except OSError:
        return True


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
        app(arguments, prog_name="viva", obj=OWN_PROCESS if arguments is None else None)
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
