"""The plugin for pytest, which costs nothing until it is used: each part is imported when something needs it."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Mapping, MutableMapping
from contextlib import ExitStack
from pathlib import Path
from pkgutil import resolve_name  # `vivavoce.plugins` would cost every call of pytest more than all else here
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast

import pytest

from vivavoce.testing.pytest_call import LEFT_OUT, TOKEN, USED_KEYS, YAML, PytestCall
from vivavoce.testing.running import RunningTest, running

if TYPE_CHECKING:
    from vivavoce.models.model import Model
    from vivavoce.penelope.agent import PenelopeAgent
    from vivavoce.store.store import Store
    from vivavoce.testing.talking_target import TalkingTarget

T = TypeVar("T")
SUITES = (".viva.yaml", ".viva.yml")
"""Ends of the names of suites that --viva collects."""
BESIDE_A_TEST = ("suite.yaml", "suite.yml")
"""Names of suites that mostly have a test in Python next to them, such as that of `viva init`."""
_call = pytest.StashKey[PytestCall]()
_rule = pytest.StashKey[object]()
_INI = {
    "viva_target": "the target of the fixture viva_target: file.py:function or an address; default: VIVAVOCE_TARGET",
    "viva_judge": "the model that judges, such as openai:gpt-4.1; default: VIVAVOCE_JUDGE",
    "viva_tester": "the model that plays the user; default: VIVAVOCE_TESTER",
    "viva_store": "the store: a file or an address of PostgreSQL; default: VIVAVOCE_STORE, else .vivavoce/vivavoce.db",
    "viva_cassette": "the file with the recorded answers of judges, which are used instead of asking",
}


class _Node(Protocol):
    """A worker of pytest-xdist, as the process that controls it has it."""

    workerinput: MutableMapping[str, Any]
    workeroutput: Mapping[str, Any]


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options."""
    group = parser.getgroup("viva", "conversations (vivavoce)")
    group.addoption(
        "--viva",
        action="store_true",
        default=False,
        help="Collect suites: files that end in .viva.yaml, or that you name; each sample is a test.",
    )
    group.addoption(
        "--viva-cassette",
        metavar="FILE",
        help="Take judge answers from this cassette without calling a model; with --viva-record, write it.",
    )
    group.addoption(
        "--viva-record",
        action="store_true",
        default=False,
        help="Call judges for answers that the cassette does not have, and add them to it.",
    )
    group.addoption("--viva-report", metavar="FILE", help="Write a report: .html, .xml (JUnit), .md, .json, .csv …")
    for name, what in _INI.items():
        parser.addini(name, what, default="")


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker, and check the options."""
    config.addinivalue_line(
        "markers", "viva(trials, min_pass): carry the test out this often; it passes if this many trials do"
    )
    call = config.stash[_call] = PytestCall(config)
    config.pluginmanager.register(call, "vivavoce-call")
    call.check()


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Collect a suite, with --viva or where it is named."""
    if file_path.suffix not in YAML or not _is_collected(file_path, parent):
        return None
    make = resolve_name("vivavoce.testing.suite_items:suite_file")
    return cast("pytest.Collector", make(file_path, parent, parent.config.stash[_call].session))


def _is_collected(path: Path, parent: pytest.Collector) -> bool:
    """Say whether a YAML file is a suite that was asked for; a suite of another name is noted where it was not."""
    is_initial, collecting = parent.session.isinitpath(path), bool(parent.config.getoption("viva"))
    if path.name.endswith(SUITES):
        return is_initial or collecting
    if path.name in BESIDE_A_TEST:
        if collecting and not is_initial:
            parent.config.stash[_call].left_out[os.path.relpath(path)] = None
        return is_initial
    return is_initial and collecting


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Make known which test is running."""
    note = _make_note(item)
    with running(RunningTest(item.nodeid, item.config.stash[_call].session, note)):
        return (yield)


def _make_note(item: pytest.Item) -> Callable[[str, object], None]:
    def note(name: str, value: object) -> None:
        if (name, value) not in item.user_properties:
            item.user_properties.append((name, value))

    return note


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Read the marker before anything is set up: one that is wrong is an error of the test."""
    if item.get_closest_marker("viva") is not None:
        item.stash[_rule] = resolve_name("vivavoce.testing.trials:rule_of")(item)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Carry a test out as often as its marker says."""
    with ExitStack() as repeating:
        if (rule := item.stash.get(_rule, None)) is not None:
            test = resolve_name("vivavoce.testing.running:running_test")()
            repeating.enter_context(resolve_name("vivavoce.testing.trials:repeat")(item, rule, test))
        return (yield)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: _Node) -> None:
    """Give each worker of pytest-xdist the same token, so that all write to one run."""
    config = cast("pytest.Config", vars(node)["config"])
    node.workerinput[TOKEN] = config.stash[_call].token


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: _Node) -> None:
    """Take over which replies a worker used, and which suites it left out."""
    call = cast("pytest.Config", vars(node)["config"]).stash[_call]
    output = cast("Mapping[str, Any]", getattr(node, "workeroutput", {}))
    call.used.update(output.get(USED_KEYS, ()))
    call.left_out.update(dict.fromkeys(output.get(LEFT_OUT, ())))


@pytest.fixture(scope="session")
def viva_store(pytestconfig: pytest.Config) -> Store:
    """The store that conversations go to."""
    return _open_fixture(lambda: pytestconfig.stash[_call].session().store)


@pytest.fixture(scope="session")
def viva_judge(pytestconfig: pytest.Config) -> Model:
    """The judge: viva_judge of the configuration, else VIVAVOCE_JUDGE; a cassette answers in its place."""
    return _open_fixture(lambda: pytestconfig.stash[_call].session().needed_judge())


@pytest.fixture(scope="session")
def viva_tester(pytestconfig: pytest.Config) -> PenelopeAgent:
    """The tester: viva_tester of the configuration, else VIVAVOCE_TESTER; its judge is that of viva_judge."""
    return _open_fixture(lambda: pytestconfig.stash[_call].session().tester)


@pytest.fixture(scope="session")
def viva_target(pytestconfig: pytest.Config) -> TalkingTarget:
    """The target: viva_target of the configuration, else VIVAVOCE_TARGET; `talk` holds a conversation with it."""
    return _open_fixture(lambda: pytestconfig.stash[_call].session().target)


def _open_fixture(opened: Callable[[], T]) -> T:
    """Return what a fixture is; what is wrong in the configuration is said without a traceback."""
    try:
        return opened()
    except resolve_name("vivavoce.errors:VivavoceError") as error:
        wrong = str(error)
    pytest.fail(wrong, pytrace=False)
