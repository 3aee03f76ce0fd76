"""Every exception of the package.

VivavoceError
├── UsageError            the user's input is wrong: one line each, exit code 2
│   ├── NotFound          a name is unknown: no such run, grader, job …
│   └── MissingExtra      an optional dependency is not installed
├── StoreError            the store cannot be read or written
├── BudgetExhausted       a limit on calls or cost is reached: the run stops, inconclusive
├── ToolError             a user's tool says that a call failed: the model learns that, and the conversation continues
└── Fault                 something went wrong inside one sample: recorded, never a crash
    ├── TargetFault       the system under test failed
    ├── RateLimited       a target or a model asked us to slow down; `blame` says which
    ├── ModelFault        a model we call (a judge) failed
    ├── TestingFault      what leads a test failed: a strategy, a check or a user-defined condition
    ├── GraderFault       an extractor, a grader or a reward function failed
    └── SuiteFault        what the suite asks cannot be done with this sample

Outside of it, `Deferred` is not a failure: an answer will come later.
"""

from __future__ import annotations

import copy
import difflib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Self

Blame = Literal["target", "tester", "judge", "grader", "store", "suite", "environment"]
"""Who is to blame for a failure."""


class VivavoceError(Exception):
    """The root of every error raised on purpose; each can be pickled, to pass it between processes."""

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore_error, (type(self), self.args, vars(self))


def _restore_error(kind: type[VivavoceError], args: tuple[Any, ...], values: dict[str, Any]) -> VivavoceError:
    """Return an error as it was, whatever its class is made from."""
    error = kind.__new__(kind, *args)
    error.args = args
    vars(error).update(values)
    return error


@dataclass(frozen=True, slots=True)
class Problem:
    """One problem in the user's input: where it is and what to do.

    Lines and columns count from 1, as editors do. It reads `file:line:column message`, or `file: message` where no
    line is known.
    """

    message: str
    file: str | Path | None = None
    line: int | None = None
    column: int | None = None

    def __str__(self) -> str:
        if self.file is None:
            return self.message
        if self.line is None:
            return f"{self.file}: {self.message}"
        place = ":".join(str(part) for part in (self.file, self.line, self.column) if part is not None)
        return f"{place} {self.message}"


class UsageError(VivavoceError):
    """The user's input is wrong; `problems` lists each problem with its place."""

    def __init__(self, *problems: Problem | str) -> None:
        self.problems = tuple(p if isinstance(p, Problem) else Problem(p) for p in problems)
        super().__init__("\n".join(str(problem) for problem in self.problems))


class NotFound(UsageError):
    """A name is unknown: there is no `what` called `name`, such as a run, a grader or a job.

    `within` says where it was looked for, such as `run r1`. Of `known`, the closest name is offered, unless a `hint`
    says what to do. `message` replaces the sentence that is made of these.
    """

    def __init__(
        self,
        what: str,
        name: str,
        *,
        within: str = "",
        known: Iterable[str] = (),
        hint: str = "",
        message: str | None = None,
    ) -> None:
        self.what, self.name = what, name
        place = f" in {within}" if within else ""
        super().__init__(message or f"no {what} '{name}'{place}{hint or did_you_mean(name, known)}")


class MissingExtra(UsageError):
    """An optional dependency is needed and not installed."""

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(f"{what} needs an optional dependency; install it with: pip install 'vivavoce[{extra}]'")


class StoreError(VivavoceError):
    """The store cannot be read or written."""


class BudgetExhausted(VivavoceError):
    """A limit on calls or cost is reached; what is done is kept."""


class Deferred(BaseException):
    """The answer to a question will come later; what needs it has to be done again then.

    It is not an `Exception`, because it is not a failure: what handles failures must let it pass.
    """


class ToolError(VivavoceError):
    """A call of a tool failed, as it may: the handler of a tool raises it, and the model reads the text."""


class Fault(VivavoceError):
    """Something went wrong inside one sample; a boundary turns it into a record.

    `kind` is one word a program can test (`timeout`, `connection`, `http`, `format`, `crash`, `rate_limit`);
    `evidence` is what was received, shortened; `retryable` says whether asking again can help; `blame` is who caused
    it, that of the class unless it is given; `status` is that of the HTTP answer, where the failure is one. `usage`
    is that of the failed calls, as `records.score` reads and writes it.
    """

    blame: Blame = "environment"
    usage: object = None

    def __init__(
        self,
        message: str,
        *,
        kind: str = "crash",
        evidence: str | None = None,
        retryable: bool = False,
        blame: Blame | None = None,
        status: int | None = None,
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.evidence = evidence
        self.retryable = retryable
        self.blame = blame or type(self).blame
        self.status = status

    def restate(
        self,
        message: str,
        *,
        evidence: str | None = None,
        retryable: bool | None = None,
        blame: Blame | None = None,
    ) -> Self:
        """Return the same failure with another message; whatever else is not given stays as it is."""
        other = copy.copy(self)
        other.args = (message,)
        other.evidence = self.evidence if evidence is None else evidence
        other.retryable = self.retryable if retryable is None else retryable
        other.blame = blame or self.blame
        return other


class TargetFault(Fault):
    """The system under test failed."""

    blame: Blame = "target"


class RateLimited(Fault):
    """The other side asked us to slow down: the target, unless `blame` says that it was a model.

    `retry_after` is in seconds, None when it did not say.
    """

    blame: Blame = "target"

    def __init__(
        self,
        message: str,
        *,
        retry_after: float | None = None,
        evidence: str | None = None,
        retryable: bool = True,
        blame: Blame | None = None,
        status: int | None = None,
    ) -> None:
        super().__init__(message, kind="rate_limit", evidence=evidence, retryable=retryable, blame=blame, status=status)
        self.retry_after = retry_after


class ModelFault(Fault):
    """A model that we call, such as a judge, failed or answered outside its schema."""

    blame: Blame = "judge"


class TestingFault(Fault):
    """What leads a test failed: a strategy, a check or a condition that the user defined."""

    __test__ = False
    blame: Blame = "tester"


class GraderFault(Fault):
    """An extractor, a grader or a reward function failed."""

    blame: Blame = "grader"


class SuiteFault(Fault):
    """What the suite asks cannot be done with this sample, such as a template naming a variable that it lacks."""

    blame: Blame = "suite"


_MAX_NAME_CHARS = 200
"""Characters of a name that is compared with others: the time grows with the product of both lengths."""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return `; did you mean 'x'?` for the closest known name, or the list of names when none is close."""
    names = sorted(set(known))
    short = [known_name for known_name in names if len(known_name) <= _MAX_NAME_CHARS]  # names may come from others
    close = difflib.get_close_matches(name, short, n=1, cutoff=0.6) if len(name) <= _MAX_NAME_CHARS else []
    if close:
        return f"; did you mean '{close[0]}'?"
    return f"; known: {', '.join(names)}" if names else ""
