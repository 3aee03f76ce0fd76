"""Success rates of tests: raw, and net of those that the tester itself spoilt."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Protocol

from pydantic import BaseModel, ConfigDict

from vivavoce.stats.intervals import Estimate, mean_interval

Interval = tuple[float, float]


class Outcome(Protocol):
    """The part of a test that counts: whether the target passed, None where unknown, and who is to blame if not.

    To blame is `target`, `tester`, `judge`, `suite` or `environment`.
    """

    @property
    def target_passed(self) -> bool | None:
        """Whether the target passed."""
        ...

    @property
    def blame(self) -> str | None:
        """Who is to blame for a failure."""
        ...


class SuccessRates(BaseModel):
    """How many of `n` tests the target passed.

    `raw` is the share among the tests that came to a verdict, `net` the same without those blamed on the tester; None
    where no test is left. The `inconclusive` ones are in neither. `tester_errors` counts all that are blamed on the
    tester, whatever their verdict. Intervals are two-sided at 95 %, None where fewer than two tests are independent.
    """

    model_config = ConfigDict(frozen=True)

    n: int
    succeeded: int
    failed: int
    tester_errors: int
    inconclusive: int
    raw: float | None
    net: float | None
    raw_interval: Interval | None
    net_interval: Interval | None

    def __str__(self) -> str:
        raw = f"{_rate_text(self.raw, self.raw_interval)} raw ({self.succeeded} of {self.succeeded + self.failed})"
        net = f"{_rate_text(self.net, self.net_interval)} net of {_count(self.tester_errors, 'tester error')}"
        return f"{raw}, {net}, {self.inconclusive} of {_count(self.n, 'test')} inconclusive"


def success_rates(outcomes: Iterable[Outcome], samples: Sequence[Hashable] | None = None) -> SuccessRates:
    """Return the success rates of tests.

    `samples` names for each test the sample it is a trial of, as trials of one sample are not independent; without it
    every test is its own. The intervals are those of `vivavoce.stats.intervals.mean_interval`: Wilson's for
    independent tests.

    Raises:
        ValueError: `samples` and `outcomes` differ in length.
    """
    tests = list(outcomes)
    tests_with_samples = list(zip(tests, range(len(tests)) if samples is None else samples, strict=True))
    decided = [(test, sample) for test, sample in tests_with_samples if test.target_passed is not None]
    raw, net = _share(decided), _share([pair for pair in decided if pair[0].blame != "tester"])
    succeeded = sum(test.target_passed is True for test in tests)
    return SuccessRates(
        n=len(tests),
        succeeded=succeeded,
        failed=len(decided) - succeeded,
        tester_errors=sum(test.blame == "tester" for test in tests),
        inconclusive=len(tests) - len(decided),
        raw=raw and raw.mean,
        net=net and net.mean,
        raw_interval=_interval(raw),
        net_interval=_interval(net),
    )


def _share(tests: Sequence[tuple[Outcome, Hashable]]) -> Estimate | None:
    return mean_interval([float(test.target_passed is True) for test, _ in tests], [sample for _, sample in tests])


def _interval(estimate: Estimate | None) -> Interval | None:
    if estimate is None or estimate.low is None or estimate.high is None:
        return None
    return estimate.low, estimate.high


def _rate_text(rate: float | None, interval: Interval | None) -> str:
    if rate is None:
        return "no rate"
    return f"{rate:.1%}" if interval is None else f"{rate:.1%} [{interval[0]:.1%}, {interval[1]:.1%}]"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
