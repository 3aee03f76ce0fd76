"""The plugins that are switched on, and what they add; the hooks themselves are in `vivavoce.hookspecs`.

A plugin that cannot be imported, fails in a hook, does not answer, or adds a name that exists is switched off, and a
`PluginWarning` names it. Everything else goes on.
"""

from __future__ import annotations

import importlib
import os
import re
import threading
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from inspect import signature
from pathlib import Path
from typing import Any, Literal, TypeVar, cast

import pluggy

from vivavoce.errors import UsageError
from vivavoce.lazy_names import lazy

PROJECT = "vivavoce"
"""The name of the hooks, and of the entry point group in which packages name their plugins."""
BUILTIN = "vivavoce.features"
"""The module whose `FEATURES` are the built-in plugins, in the order in which they are asked."""
WITHOUT = "VIVAVOCE_WITHOUT"
"""The environment variable with the names of plugins to switch off, separated by commas."""
HOOK_SECONDS = 10.0
"""How long an installed plugin may take to be imported or to answer a hook that registers something."""

_REFERENCE = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*")
"""The form `package.module:name`."""

A = TypeVar("A")
hookimpl = pluggy.HookimplMarker(PROJECT)


class PluginWarning(UserWarning):
    """A plugin was switched off; the message says which and why."""


@dataclass(frozen=True, slots=True)
class Command:
    """A command of `viva`: `function` refers to it as `module:name`.

    With `of="compare"` it is a part of another command, as in `viva compare groups`; otherwise `panel` says under which
    heading of `viva --help` it is listed. It is listed last, or `before` another command. It can also be called by
    `former_name`, which is not listed.
    """

    help: str
    function: str
    of: str | None = None
    panel: str | None = None
    before: str | None = None
    former_name: str | None = None


@dataclass(frozen=True, slots=True)
class RunDescription:
    """What a special kind of run is, such as "fork of RUN/SAMPLE from turn 2", and how to make it again."""

    words: str
    again: str


@dataclass(frozen=True, slots=True)
class Page:
    """A link to a page: its text, its address, and its place: a button at the top, the last ones, or the foot."""

    text: str
    link: str
    place: Literal["top", "second", "foot"] = "top"


@dataclass(frozen=True, slots=True)
class PagePart:
    """A part of a page: a template of the plugin, and what it calls `values`; `status` is that of the whole page."""

    template: str
    values: Mapping[str, object]
    status: int = 200


@dataclass(frozen=True, slots=True)
class PageLine:
    """A line of a page: plain text, and the links that follow it."""

    text: str
    pages: tuple[Page, ...] = ()


@dataclass(frozen=True, slots=True)
class PageSection:
    """A section of a page: paragraphs of plain text, and links below them."""

    title: str
    pages: tuple[Page, ...] = ()
    paragraphs: tuple[str, ...] = ()


class Feature:
    """A plugin as data: what it adds, and which of its functions answer hooks.

    References are relative to `package`, which is a folder: `page:links_of_run` is a function of its module `page`.
    `hooks` are answered by the function that is named, or with the references that stand there by name. Nothing is
    imported before a hook is called. A function takes only the hook arguments that it uses. The folder may have
    `templates` and `static` for its pages.
    """

    def __init__(
        self,
        package: str,
        *,
        commands: Mapping[str, Command] | None = None,
        routes: Sequence[str] = (),
        tabs: Sequence[Page] = (),
        run_list_parameters: Sequence[str] = (),
        **hooks: str | Mapping[str, str],
    ) -> None:
        qualified_commands = {
            name: replace(each, function=f"{package}.{each.function}") for name, each in (commands or {}).items()
        }
        folder = Path(__file__).parent.joinpath(*package.split(".")[1:])
        for hook, value in (
            ("register_commands", qualified_commands),
            ("register_routes", [f"{package}.{route}" for route in routes]),
            ("register_page_files", folder if routes else None),
            ("page_tabs", tabs),
            ("run_list_parameters", run_list_parameters),
        ):
            if value:
                setattr(self, hook, _answer_with(value))
        for hook, answer in hooks.items():
            if isinstance(answer, str):
                setattr(self, hook, _answer_by(hook, f"{package}.{answer}"))
            else:
                references = {name: f"{package}.{reference}" for name, reference in answer.items()}
                setattr(self, hook, _answer_with(references))


def _answer_with(value: Any) -> Callable[[], Any]:
    """Return an implementation of a hook that returns a value."""

    @hookimpl
    def answer() -> Any:
        return value

    return answer


def _answer_by(hook: str, reference: str) -> Callable[..., Any]:
    """Return an implementation of a hook that imports a function and calls it with the arguments that it takes."""
    specification = getattr(importlib.import_module("vivavoce.hookspecs"), hook)
    names = list(signature(specification).parameters)

    @hookimpl
    def answer(*values: Any) -> Any:
        function = lazy(reference)
        arguments = dict(zip(names, values, strict=True))
        return function(**{name: arguments[name] for name in signature(function).parameters})

    answer.__wrapped__ = specification  # pyright: ignore[reportFunctionMemberAccess]  # pluggy reads its arguments
    return answer


@dataclass(frozen=True, slots=True)
class Addition:
    """Something that a plugin adds under a name; `reference` is its `package.module:name`."""

    plugin: str
    name: str
    reference: str


class Plugins:
    """The plugins that are switched on: built-in features, then what installed packages add."""

    def __init__(self, without: frozenset[str], installed: Mapping[str, EntryPoint]) -> None:
        self._manager = pluggy.PluginManager(PROJECT)
        self._additions: dict[tuple[str, ...], dict[str, Addition]] = {}
        self._lock = threading.RLock()
        self._manager.add_hookspecs(importlib.import_module("vivavoce.hookspecs"))
        self._builtin: Mapping[str, Feature] = importlib.import_module(BUILTIN).FEATURES
        self._without = without
        for name, feature in self._builtin.items():
            if name not in without:
                self._manager.register(feature, name)
        for name, point in sorted(installed.items()):
            if name not in without:
                self._install(name, point)

    @property
    def names(self) -> list[str]:
        """The names of the plugins, in the order in which they are asked."""
        return [name for name, _ in self._manager.list_name_plugin()]

    def is_built_in(self, name: str) -> bool:
        """Return whether a plugin is a feature of this package."""
        return name in self._builtin

    def switched_off(self, hooks: Sequence[str]) -> list[str]:
        """Return the built-in features that answer one of these hooks and are switched off."""
        return [
            name
            for name, feature in self._builtin.items()
            if name in self._without and any(hasattr(feature, hook) for hook in hooks)
        ]

    def results(self, hook: str, **arguments: Any) -> Iterator[tuple[str, Any]]:
        """Yield the name of each plugin that implements a hook and answers it with something, and its answer."""
        for name, plugin in self._manager.list_name_plugin():
            implementations = [
                implementation
                for implementation in self._manager.get_hookcallers(plugin) or []
                if implementation.name == hook
            ]
            if not implementations:
                continue
            others = [other for other in self._manager.get_plugins() if other is not plugin]
            caller = self._manager.subset_hook_caller(hook, others)
            try:
                answers = (
                    caller(**arguments) if name in self._builtin else _in_time(lambda call=caller: call(**arguments))
                )
            except Exception as error:
                if name in self._builtin:
                    raise
                self.switch_off(name, f"{hook}: {_reason(error)}")
                continue
            yield from ((name, answer) for answer in answers if answer is not None)

    def additions(self, kind: str, hooks: tuple[str, ...], builtin: Collection[str]) -> Mapping[str, Addition]:
        """Return what plugins add of a kind through `hooks`, by name: features in their order, then packages, sorted.

        A plugin that adds something else than references by name, or a name that exists, is switched off.
        """
        with self._lock:
            if hooks not in self._additions:
                self._additions[hooks] = self._collect(kind, hooks, builtin)
            table = self._additions[hooks]
            return {name: addition for name, addition in table.items() if self._manager.has_plugin(addition.plugin)}

    def switch_off(self, name: str, reason: str) -> None:
        """Remove a plugin and warn."""
        with self._lock:
            if not self._manager.has_plugin(name):
                return
            self._manager.unregister(name=name)
        warnings.warn(f"the plugin '{name}' is switched off: {reason}", PluginWarning, stacklevel=2)

    def _collect(self, kind: str, hooks: Sequence[str], builtin: Collection[str]) -> dict[str, Addition]:
        table: dict[str, Addition] = {}
        for hook in hooks:
            for plugin, answer in list(self.results(hook)):
                try:
                    added = _read_additions(plugin, kind, answer)
                    for name, addition in added.items():
                        _check_new(addition, kind, builtin, table.get(name))
                except ValueError as error:
                    self.switch_off(plugin, f"{hook}: {error}")
                    table = {name: addition for name, addition in table.items() if addition.plugin != plugin}
                else:
                    table |= {name: addition for name, addition in added.items() if name not in table}
        own = {name: addition for name, addition in table.items() if addition.plugin in self._builtin}
        return own | dict(sorted(table.items()))

    def _install(self, name: str, point: EntryPoint) -> None:
        if self._manager.has_plugin(name):
            self._refuse(name, f"{point.value} has the name of another plugin")
            return
        try:
            self._manager.register(_in_time(point.load), name)
        except Exception as error:
            self._refuse(name, f"{point.value} cannot be imported: {_reason(error)}")
            return
        for hook in self._unknown_hooks(name):
            self.switch_off(name, f"it uses the hook {hook}, which this version of vivavoce does not have")
            return

    def _unknown_hooks(self, name: str) -> list[str]:
        callers = self._manager.get_hookcallers(self._manager.get_plugin(name)) or []
        return [caller.name for caller in callers if not caller.has_spec()]

    @staticmethod
    def _refuse(name: str, reason: str) -> None:
        warnings.warn(f"the plugin '{name}' is switched off: {reason}", PluginWarning, stacklevel=2)


@cache
def plugins() -> Plugins:
    """Return the plugins of this process: all but those that `VIVAVOCE_WITHOUT` names."""
    without = frozenset(name.strip() for name in os.environ.get(WITHOUT, "").split(",") if name.strip())
    return Plugins(without, {point.name: point for point in entry_points(group=PROJECT)})


def answers(hook: str, **arguments: Any) -> Iterator[Any]:
    """Yield what the plugins answer to a hook; answers that are lists are joined."""
    for _, answer in plugins().results(hook, **arguments):
        if isinstance(answer, list | tuple):
            yield from cast("list[Any]", answer)
        else:
            yield answer


def answers_of(kind: type[A], hook: str, **arguments: Any) -> Iterator[A]:
    """Yield what the plugins answer to a hook that returns several things of a kind.

    A plugin that answers something else is switched off.
    """
    for plugin, answer in list(plugins().results(hook, **arguments)):
        try:
            answers: list[Any] = list(answer)
        except Exception as error:
            plugins().switch_off(plugin, f"{hook}: {_reason(error)}")
            continue
        other = next((item for item in answers if not isinstance(item, kind)), None)
        if other is None:
            yield from answers
        else:
            plugins().switch_off(plugin, f"{hook}: it returns a {type(other).__name__}, not a {kind.__name__}")


def first_answer(hook: str, **arguments: Any) -> Any:
    """Return the first answer to a hook, None where no plugin has one."""
    return next(answers(hook, **arguments), None)


def needed_answer(what: str, plugin: str, hook: str, **arguments: Any) -> Any:
    """Return the first answer to a hook of a feature that something needs.

    Raises:
        UsageError: the feature is switched off; the message says that `what` needs it.
    """
    answer = first_answer(hook, **arguments)
    if answer is None:
        raise UsageError(f"{what} needs the plugin '{plugin}', which is switched off")
    return answer


def description(run: Any) -> RunDescription | None:
    """Return what a special kind of run is, None for an ordinary run."""
    return first_answer("describe_run", run=run)


def is_built_in(plugin: str) -> bool:
    """Return whether a plugin is a feature of this package."""
    return plugins().is_built_in(plugin)


def switched_off(hooks: Sequence[str]) -> list[str]:
    """Return the built-in features that answer one of these hooks and are switched off in this process."""
    return plugins().switched_off(hooks)


def additions(kind: str, hooks: tuple[str, ...], builtin: Collection[str]) -> Mapping[str, Addition]:
    """Return what the plugins of this process add of a kind, by name."""
    return plugins().additions(kind, hooks, builtin)


def load(kind: str, addition: Addition) -> Any:
    """Import what a plugin adds.

    Raises:
        UsageError: it cannot be imported; the message names the plugin and the reference.
    """
    if is_built_in(addition.plugin):
        return lazy(addition.reference)
    try:
        return lazy(addition.reference)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # what foreign code raises is a reason to refuse it, SystemExit included
        raise UsageError(
            f"the plugin '{addition.plugin}' cannot load its {kind} '{addition.name}' from {addition.reference}: "
            f"{_reason(error)}"
        ) from error


def _read_additions(plugin: str, kind: str, answer: Any) -> dict[str, Addition]:
    """Return what a hook answered, checked.

    Raises:
        ValueError: it is not a mapping from names to references.
    """
    if not isinstance(answer, Mapping):
        raise ValueError(f"needs a mapping from names to 'package.module:name', got {type(answer).__name__}")
    added: dict[str, Addition] = {}
    for name, reference in cast("Mapping[Any, Any]", answer).items():
        if not (isinstance(name, str) and name.strip() == name != ""):
            raise ValueError(f"{name!r} cannot be the name of a {kind}; use text")
        if not (isinstance(reference, str) and _REFERENCE.fullmatch(reference)):
            raise ValueError(f"the {kind} '{name}' has {reference!r}; it needs a reference 'package.module:name'")
        added[name] = Addition(plugin, name, reference)
    return added


def _check_new(addition: Addition, kind: str, builtin: Collection[str], other: Addition | None) -> None:
    """Check that nothing has the name of an addition; the same reference may be added twice.

    Raises:
        ValueError: the name is built in, or stands for something else in this or another plugin.
    """
    if addition.name in builtin:
        raise ValueError(f"it adds the {kind} '{addition.name}', which is built in")
    if other is not None and other.reference != addition.reference:
        owner = "it adds twice" if other.plugin == addition.plugin else f"the plugin '{other.plugin}' adds too"
        raise ValueError(f"it adds the {kind} '{addition.name}', which {owner}")


def _in_time(call: Any) -> Any:
    """Return what foreign code returns within `HOOK_SECONDS`.

    Raises:
        TimeoutError: it takes longer; the thread in which it runs is left behind.
    """
    outcome: dict[str, Any] = {}

    def work() -> None:
        try:
            outcome["result"] = call()
        except BaseException as error:  # what foreign code raises is a reason to switch it off, SystemExit included
            outcome["error"] = error

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(HOOK_SECONDS)
    if thread.is_alive():
        raise TimeoutError(f"no answer within {HOOK_SECONDS:g} seconds")
    if "error" in outcome:
        raise RuntimeError(_reason(outcome["error"])) from outcome["error"]
    return outcome["result"]


def _reason(error: BaseException) -> str:
    if isinstance(error, RuntimeError) and error.__cause__ is not None:
        return str(error)
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
