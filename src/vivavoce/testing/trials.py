"""`@pytest.mark.viva(trials=5, min_pass=4)`: one test that is carried out several times and has one verdict."""

from __future__ import annotations

import functools
import inspect
import traceback
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import SkipTest

import pytest

from vivavoce.errors import did_you_mean
from vivavoce.records.score import to_number
from vivavoce.testing.running import RunningTest

MARKER = "viva"
KEYS = ("trials", "min_pass")
EXCUSED = (pytest.skip.Exception, pytest.xfail.Exception, SkipTest)
"""What a trial raises that decides nothing: a skip, or a failure that was expected."""


@dataclass(frozen=True, slots=True)
class Rule:
    """How often a test is carried out, and how often it has to pass."""

    trials: int
    min_pass: int


def rule_of(item: pytest.Item) -> Rule | None:
    """Return what the marker of a test says, None where it has none.

    Raises:
        pytest.fail.Exception: the marker is wrong.
    """
    marker = item.get_closest_marker(MARKER)
    if marker is None:
        return None
    try:
        return _rule(marker)
    except ValueError as error:
        wrong = str(error)
    pytest.fail(f"@pytest.mark.{MARKER}: {wrong}", pytrace=False)


def _rule(marker: pytest.Mark) -> Rule:
    arguments = dict(marker.kwargs)
    for name in arguments:
        if name not in KEYS:
            raise ValueError(f"no key '{name}'{did_you_mean(name, KEYS)}")
    if marker.args or "trials" not in arguments:
        raise ValueError("use keywords: trials=5, min_pass=4")
    trials = _whole("trials", arguments["trials"], 1)
    least = _whole("min_pass", arguments.get("min_pass", trials), 1)
    if least > trials:
        raise ValueError(f"min_pass is {least}, but there are only {trials} trials")
    return Rule(trials, least)


def _whole(name: str, value: object, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ValueError(f"{name} must be a whole number of at least {least}; got {value!r}")
    return value


@contextmanager
def repeat(item: pytest.Item, rule: Rule, test: RunningTest) -> Generator[None]:
    """Let the function of a test be carried out once for each trial while the block lasts; fixtures stay as they are.

    Raises:
        pytest.fail.Exception: it is not a test function.
    """
    if not isinstance(item, pytest.Function) or getattr(item, "_testcase", None) is not None or _of_unittest(item):
        pytest.fail(f"@pytest.mark.{MARKER} needs a test function; {item.name} is not one", pytrace=False)
    function: Callable[..., Any] = item.obj
    tally = _Tally(rule, test)
    item.obj = _async(function, tally) if inspect.iscoroutinefunction(function) else _sync(function, tally)
    try:
        yield
    finally:
        item.obj = function


def _of_unittest(item: pytest.Function) -> bool:
    return any(base.__module__ == "unittest.case" for base in (item.cls.__mro__ if item.cls is not None else ()))


def _sync(function: Callable[..., Any], tally: _Tally) -> Callable[..., Any]:
    @functools.wraps(function)
    def every_trial(*args: Any, **kwargs: Any) -> None:
        __tracebackhide__ = True
        for _ in tally.trials():
            with tally.trial():
                function(*args, **kwargs)
        tally.decide()

    return every_trial


def _async(function: Callable[..., Any], tally: _Tally) -> Callable[..., Any]:
    @functools.wraps(function)
    async def every_trial(*args: Any, **kwargs: Any) -> None:
        __tracebackhide__ = True
        for _ in tally.trials():
            with tally.trial():
                await function(*args, **kwargs)
        tally.decide()

    return every_trial


@dataclass(slots=True)
class _Tally:
    """What came of the trials so far: how many passed, what the others said, what broke, and what was excused."""

    rule: Rule
    test: RunningTest
    passed: int = 0
    misses: list[tuple[int, BaseException]] = field(default_factory=list[tuple[int, BaseException]])
    errors: list[tuple[int, Exception]] = field(default_factory=list[tuple[int, Exception]])
    excused: list[tuple[int, BaseException]] = field(default_factory=list[tuple[int, BaseException]])

    def trials(self) -> Generator[None]:
        """Make each trial the current one."""
        for trial in range(self.rule.trials):
            self.test.trial = trial
            yield

    @contextmanager
    def trial(self) -> Generator[None]:
        """Count what comes of a trial; a skip or an expected failure of the first one is that of the whole test."""
        try:
            yield
        except pytest.exit.Exception:
            raise
        except EXCUSED as error:
            if self.test.trial == 0:
                raise
            self.excused.append((self.test.trial, error))
        except (AssertionError, pytest.fail.Exception) as error:
            self.misses.append((self.test.trial, error))
        except Exception as error:
            self.errors.append((self.test.trial, error))
        else:
            self.passed += 1

    def decide(self) -> None:
        """Give the verdict; what broke is an error where it could change it. A skip never hides a miss.

        Raises:
            pytest.fail.Exception: too few passed.
            Exception: what broke, or was skipped, where enough would have passed without it.
        """
        __tracebackhide__ = True
        rule, words = self.rule, f"{self.passed} of {self.rule.trials} trials passed; needed {self.rule.min_pass}"
        self.test.note("viva_trials", words)
        if self.passed >= rule.min_pass:
            return
        could_pass = self.passed + len(self.errors) + len(self.excused) >= rule.min_pass
        if could_pass and self.errors:
            trial, error = self.errors[0]
            broke = ", ".join(str(to_number(index)) for index, _ in self.errors)
            error.add_note(f"{words}; broke: trial {broke}. This is what broke trial {to_number(trial)}")
            raise error
        if could_pass and not self.misses:
            raise self.excused[0][1]
        wrong = sorted([*self.misses, *self.errors, *self.excused], key=lambda pair: pair[0])
        pytest.fail("\n".join([words, *(_trial_text(index, error) for index, error in wrong)]), pytrace=False)


def _trial_text(index: int, error: BaseException) -> str:
    """Return what a trial said, and the line of the test where."""
    text = str(error) or type(error).__name__
    plain = isinstance(error, AssertionError | pytest.fail.Exception) and not isinstance(error, EXCUSED)
    kind = "" if plain else f"{type(error).__name__}: "
    return f"\ntrial {to_number(index)}{_place(traceback.extract_tb(error.__traceback__))}: {kind}{text}"


def _place(frames: Sequence[traceback.FrameSummary]) -> str:
    """Return the line of the test file, which called everything else."""
    ours = Path(__file__).parent
    for frame in frames:
        path = Path(frame.filename)
        if path.parent != ours and path.name != "contextlib.py":
            return f" ({path.name}:{frame.lineno})"
    return ""
