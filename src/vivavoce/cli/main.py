"""`viva`: the commands, each loaded when it is called."""

from __future__ import annotations

import os
import sys
import traceback
from io import TextIOWrapper
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup, TyperOption

from vivavoce.errors import UsageError, VivavoceError, did_you_mean
from vivavoce.plugins import lazy

COMMANDS = {
    "run": "Hold the conversations of a suite and grade them.",
    "test": "Have a tester lead one conversation towards a goal.",
    "judge": "Measure recorded conversations with metrics.",
    "scenarios": "Write test scenarios from a description or from recorded conversations.",
    "grade": "Grade a run again; no target is called.",
    "show": "Show a run, or one of its conversations.",
    "serve": "Serve the API and the pages of a store.",
    "view": "Open the pages of the store in a browser.",
    "runs": "List the runs of this workspace, newest first.",
    "compare": "Compare two runs of the same samples.",
    "export": "Write a run as a file for another program.",
    "labels": "Write what people say of conversations, and how far a judge agrees.",
    "cache": "Show the kept replies of models, or carry them elsewhere as a cassette.",
    "store": "Look after the store: what is in it, migrate, clean up, copy.",
    "token": "Let others use a server of the store: make, list and revoke their tokens.",
    "init": "Write a small suite to start from.",
    "validate": "Check a suite and its dataset; nothing is run.",
    "list": "List what a suite may name.",
    "schema": "Print the JSON Schema of a suite, for editors.",
    "doctor": "Say what this machine has and what it lacks.",
}
_FILES = {"list": "names"}


class LazyGroup(TyperGroup):
    """Commands whose modules are imported when they are called, so that `viva --help` is quick."""

    def list_commands(self, ctx: typer.Context) -> list[str]:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Return the commands in the order people need them."""
        return list(COMMANDS)

    def get_command(self, ctx: typer.Context, cmd_name: str) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Return a command's name and one line, which is all that the list of commands shows."""
        return TyperCommand(cmd_name, help=COMMANDS[cmd_name]) if cmd_name in COMMANDS else None

    def resolve_command(self, ctx: typer.Context, args: list[str]) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Load the command that is called."""
        name = args[0]
        if name not in COMMANDS:
            ctx.fail(f"no command '{name}'{did_you_mean(name, COMMANDS)}")
        return name, load_command(name), args[1:]


class OnceCommand(TyperCommand):
    """A command whose options are given once each, unless they take several values."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the options; of one that is given twice, the first value would be lost."""
        *_, order = self.make_parser(ctx).parse_args(list(args))
        seen = [one.opts[-1] for one in order if isinstance(one, TyperOption) and _takes_one(one)]
        if twice := [name for name in dict.fromkeys(seen) if seen.count(name) > 1]:
            ctx.fail(f"{twice[0]} is given twice, and takes one value")
        return super().parse_args(ctx, args)


def _takes_one(option: TyperOption) -> bool:
    return not (option.multiple or option.count or option.is_flag)


def load_command(name: str) -> Any:
    """Return a command as it is, from its own file."""
    single = typer.Typer(add_completion=False, rich_markup_mode=None)
    function = lazy(f"vivavoce.cli.{_FILES.get(name, name)}:command")
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
def callback(version: bool = typer.Option(False, "--version", help="Print the version and exit.")) -> None:
    """Test and grade multi-turn conversations with AI systems."""
    if version:
        typer.echo(lazy("vivavoce:__version__"))
        raise typer.Exit


def main(arguments: list[str] | None = None) -> None:
    """Run the command line; a user's mistake is one line and exit code 2, never a traceback."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal that knows no … still gets the rest
    try:
        code = _run(arguments)
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 0
    except OSError as error:
        _complain(f"cannot write the output: {error.strerror or error}")
        code = 2
    sys.exit(code)


def _run(arguments: list[str] | None) -> int:
    try:
        app(arguments)
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else 0
    except UsageError as error:
        for problem in error.problems:
            _complain(problem)
        return 2
    except VivavoceError as error:
        _complain(error)
        return 3
    except OSError:
        raise
    except Exception:
        _complain(traceback.format_exc())
        _complain("this is a mistake in vivavoce, not in your suite; there is no verdict")
        return 3
    return 0


def _complain(error: object) -> None:
    lazy("vivavoce.cli.output:complain")(error)


if __name__ == "__main__":
    main()
