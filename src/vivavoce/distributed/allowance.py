"""What all workers together may spend, handed out by one place in shares that no two workers can spend twice."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, eq=False)
class Share:
    """What one worker may spend on one part, None for no limit; `workers` share rates and concurrency."""

    workers: int
    max_calls: int | None = None
    max_cost: float | None = None


@dataclass(slots=True)
class Allowance:
    """The calls and the cost, in US dollars, that are left for `workers` workers; None means no limit.

    A share is a part of what nobody holds, so that the others need not wait. What a worker did not spend comes back; of
    one that died nobody knows what it spent, so all of its share counts as spent.
    """

    workers: int
    max_calls: int | None = None
    max_cost: float | None = None
    _held: set[Share] = field(default_factory=set[Share], init=False)

    def share(self, *, whole: bool = False) -> Share | None:
        """Return a share, or the `whole` rest; None where nothing is left, or others hold all of it."""
        parts = 1 if whole else 2 * max(1, self.workers - len(self._held))
        calls = None if self.max_calls is None else -(-self.max_calls // parts)
        cost = None if self.max_cost is None else self.max_cost / parts
        if calls == 0 or (cost is not None and cost <= 0):
            return None
        given = Share(self.workers, calls, cost)
        self._change(given, -1)
        self._held.add(given)
        return given

    def returned(self, share: Share, calls: int, cost: float) -> None:
        """Take a share back of which so much was spent."""
        self._held.remove(share)
        self._change(share, 1)
        if self.max_calls is not None:
            self.max_calls = max(0, self.max_calls - calls)
        if self.max_cost is not None:
            self.max_cost = max(0.0, self.max_cost - cost)

    def lost(self, share: Share) -> None:
        """Take note that a worker died with its share."""
        self._held.remove(share)

    def _change(self, share: Share, sign: int) -> None:
        if self.max_calls is not None and share.max_calls is not None:
            self.max_calls += sign * share.max_calls
        if self.max_cost is not None and share.max_cost is not None:
            self.max_cost += sign * share.max_cost
