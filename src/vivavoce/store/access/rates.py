"""What clients have left of their rate limits, for all servers of a store together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlalchemy import Connection, bindparam, delete, select, update

from vivavoce.store.database.database import Database, insert_rows, now_in
from vivavoce.store.database.schema import rate_limits

_COLUMNS = ("client", "left", "at")


@dataclass(frozen=True, slots=True)
class Rate:
    """A token bucket: `burst` requests at once, and `per_second` in the long run."""

    per_second: float
    burst: float


@dataclass(frozen=True, slots=True)
class Rates:
    """The shared buckets of a store; a client is named together with the kind of its requests."""

    database: Database

    def spend(self, rate: Rate, spent: Mapping[str, int]) -> dict[str, float]:
        """Take what some clients have spent, and return what each has left: below 0 if they spent too much.

        Raises:
            StoreError: the store cannot be written.
        """
        if not spent:
            return {}
        clients = sorted(spent)  # in one order, so that two servers never wait for each other
        with self.database.writing() as connection:
            now = connection.execute(select(now_in(connection))).scalar_one()
            insert_rows(connection, rate_limits, _COLUMNS, [(client, rate.burst, now) for client in clients], once=True)
            query = select(rate_limits).where(rate_limits.c.client.in_(clients)).order_by(rate_limits.c.client)
            rows = connection.execute(query.with_for_update()).all()
            left = {
                row.client: min(rate.burst, row.left + max(0.0, now - row.at) * rate.per_second) - spent[row.client]
                for row in rows
            }
            _set(connection, left, now)
        return left

    def forget(self, seconds: float) -> None:
        """Delete the clients without a request for some time, in which their buckets have become full.

        Raises:
            StoreError: the store cannot be written.
        """
        with self.database.writing() as connection:
            connection.execute(delete(rate_limits).where(rate_limits.c.at < now_in(connection) - seconds))


def _set(connection: Connection, left: Mapping[str, float], now: float) -> None:
    statement = update(rate_limits).where(rate_limits.c.client == bindparam("who"))
    statement = statement.values(left=bindparam("now_left"), at=now)
    connection.execute(statement, [{"who": client, "now_left": value} for client, value in left.items()])
