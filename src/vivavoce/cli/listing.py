"""The commands of `viva`: which there are, how they are grouped, and which are parts of others."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from vivavoce.extensions import Command, plugins

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
    "Trust": {
        "labels": "Export human labels, or compare a judge with them.",
        "metrics": "Test metrics: plant known defects in good conversations.",
        "plan": "Plan how many samples, trials and labels a change needs.",
    },
    "Data": {
        "convert": "Convert conversations from one format to another.",
        "dataset": "Keep versions of a dataset, and show what changed.",
        "scenarios": "Write test scenarios from a description or recordings.",
    },
    "Operate": {
        "serve": "Start a server with the API and the pages.",
        "store": "Maintain the store: migrate, backup, restore, gc, copy.",
    },
}
"""The commands of the core by what they are for, those that most people need first."""

PLUGINS = "Plugins"
"""The panel of the commands that installed packages add."""

PARTS: Mapping[str, Mapping[str, str]] = {
    "judge": {"batches": "List or cancel pending batch jobs."},
    "validate": {
        "list": "List the names a suite can use: graders, metrics, and more.",
        "schema": "Print the JSON Schema of a suite or its rows, for editors.",
        "doctor": "Check what is installed on this machine and what is missing.",
    },
    "runs": {
        "grade": "Grade the stored conversations of a run again.",
        "merge": "Merge the parts of a run into one run.",
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

_MODULES = {"list": "names"}
"""Modules that are not named after their command."""


@cache
def commands() -> Mapping[str, Command]:
    """Return all commands by their own name, those of plugins last."""
    listed = {
        name: Command(text, f"vivavoce.cli.{_MODULES.get(name, name)}:command", of=whole, panel=panel)
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
            shown[command.panel if command.panel in shown else PLUGINS].append(name)
    return {panel: names for panel, names in shown.items() if names}


def parts_of(whole: str) -> dict[str, Command]:
    """Return the commands that are parts of another, by name."""
    return {name: command for name, command in commands().items() if _whole_of(command) == whole}


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
