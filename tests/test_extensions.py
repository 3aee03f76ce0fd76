"""Plugins of others: what they add is there, and one that fails is named and switched off."""

from __future__ import annotations

import re
import sys
import warnings
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from vivavoce import extensions
from vivavoce.cli.main import commands, full_name, panels, parts_of
from vivavoce.extensions import PageSection, Plugins, PluginWarning, answers_of
from vivavoce.features import FEATURES

PLUGIN = """
from vivavoce.extensions import Command, hookimpl

@hookimpl
def register_commands():
    return {"greet": Command("Say hello.", "acme_greeting:command")}
"""


def plugins_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, **sources: str) -> Plugins:
    """Return plugins with modules that an installed package would name."""
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    for name, source in sources.items():
        monkeypatch.delitem(sys.modules, name, raising=False)
        (tmp_path / f"{name}.py").write_text(source)
    return Plugins(frozenset(), {name: EntryPoint(name, name, "vivavoce") for name in sources})


def commands_with(plugins: Plugins, monkeypatch: pytest.MonkeyPatch) -> dict[str, object]:
    monkeypatch.setattr("vivavoce.cli.main.plugins", lambda: plugins)
    commands.cache_clear()
    try:
        return dict(commands())
    finally:
        commands.cache_clear()


@pytest.mark.parametrize(("place", "panel"), [("", "Plugins"), (', panel="Data"', "Data"), (', of="show"', None)])
def test_a_command_of_a_plugin_is_listed_where_it_says(
    place: str, panel: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = PLUGIN.replace('command")', f'command"{place})')
    monkeypatch.setattr("vivavoce.cli.main.plugins", lambda: plugins_with(tmp_path, monkeypatch, acme_one=source))
    commands.cache_clear()
    try:
        assert next((heading for heading, names in panels().items() if "greet" in names), None) == panel
        assert ("greet" in parts_of("show")) is (panel is None)
        assert full_name("greet") == ("greet" if panel else "show greet")
    finally:
        commands.cache_clear()


def test_a_plugin_that_cannot_be_imported_is_named_and_the_others_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.warns(PluginWarning, match="'acme_two' is switched off: acme_two cannot be imported: .*no such part"):
        plugins = plugins_with(tmp_path, monkeypatch, acme_two="raise SystemExit('no such part')", acme_one=PLUGIN)
    assert "acme_two" not in plugins.names
    assert "greet" in commands_with(plugins, monkeypatch)


def test_a_plugin_for_a_newer_version_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = "from vivavoce.extensions import hookimpl\n@hookimpl\ndef register_moods(): return []\n"
    with pytest.warns(PluginWarning, match="'acme_three' is switched off: it uses the hook register_moods"):
        plugins = plugins_with(tmp_path, monkeypatch, acme_three=source)
    assert "acme_three" not in plugins.names


def test_a_command_that_exists_switches_the_plugin_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plugins = plugins_with(tmp_path, monkeypatch, acme_four=PLUGIN.replace('"greet"', '"run"'), acme_one=PLUGIN)
    with pytest.warns(PluginWarning, match="'acme_four' is switched off: it adds the command 'run', which exists"):
        commands = commands_with(plugins, monkeypatch)
    assert commands["run"] != commands["greet"]
    assert plugins.names[-1] == "acme_one"


@pytest.mark.parametrize("body", ["raise ValueError('no\\n luck')", "import time; time.sleep(60)"])
def test_a_hook_that_fails_or_hangs_switches_the_plugin_off(
    body: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(extensions, "HOOK_SECONDS", 0.2)
    source = f"from vivavoce.extensions import hookimpl\n@hookimpl\ndef register_commands():\n    {body}\n"
    plugins = plugins_with(tmp_path, monkeypatch, acme_five=source)
    with pytest.warns(
        PluginWarning,
        match="'acme_five' is switched off: register_commands: (ValueError: no luck|TimeoutError: no answer)",
    ):
        commands = commands_with(plugins, monkeypatch)
    assert "run" in commands
    assert "acme_five" not in plugins.names


SECTION = """
from vivavoce.extensions import PageSection, hookimpl

@hookimpl
def run_page_sections(store, run, grading):
    {body}
"""
BODIES = {
    "return [PageSection('Notes', paragraphs=('<b>bold</b>',))]": None,
    "yield PageSection('Notes')": None,
    "return None": None,
    "return ['text']": "it returns a str, not a PageSection",
    "return 3": "TypeError: 'int' object is not iterable",
    "return store.nothing": "AttributeError: .*",
    "yield 1 / 0": "ZeroDivisionError: division by zero",
}


@pytest.mark.parametrize("body", BODIES)
def test_a_plugin_with_a_wrong_section_is_switched_off_and_the_page_is_shown(
    body: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    good = SECTION.format(body="return (PageSection('Good'),)")
    monkeypatch.delitem(sys.modules, "acme_seven", raising=False)
    plugins = plugins_with(tmp_path, monkeypatch, acme_seven=SECTION.format(body=body), acme_eight=good)
    monkeypatch.setattr(extensions, "plugins", lambda: plugins)
    problem = BODIES[body]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        titles = [
            section.title
            for section in answers_of(PageSection, "run_page_sections", store=None, run=None, grading=None)
        ]
    assert "Good" in titles
    assert ("acme_seven" in plugins.names) == (problem is None)
    messages = [str(warning.message) for warning in caught]
    expected = [] if problem is None else [f"the plugin 'acme_seven' is switched off: run_page_sections: {problem}"]
    assert len(messages) == len(expected)
    assert all(re.fullmatch(pattern, message) for pattern, message in zip(expected, messages, strict=True))


def test_a_second_plugin_of_a_name_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.warns(PluginWarning, match="'forks' is switched off: acme_six has the name of another plugin"):
        plugins = Plugins(frozenset(), {"forks": EntryPoint("forks", "acme_six", "vivavoce")})
    assert plugins.names == list(FEATURES)
