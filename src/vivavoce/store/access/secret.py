"""Random values that all servers of a store share, such as the one that signs the forms of their pages."""

from __future__ import annotations

import secrets
from dataclasses import dataclass

from sqlalchemy import select

from vivavoce.store.database.database import Database
from vivavoce.store.database.insert import insert_rows
from vivavoce.store.database.server_tables import server_secrets


@dataclass(frozen=True, slots=True)
class Secrets:
    """The shared random values of a store."""

    database: Database

    def value(self, name: str) -> bytes:
        """Return the 32 bytes of a name, the same for every server; the first one who asks makes them up.

        Raises:
            StoreError: there are none yet, and the store cannot be written.
        """
        query = select(server_secrets.c.value).where(server_secrets.c.name == name)
        with self.database.connected() as connection:
            found = connection.execute(query).scalar()
        if found is None:
            with self.database.writing() as connection:
                row = (name, secrets.token_hex(32))
                insert_rows(connection, server_secrets, ("name", "value"), [row], once=True)
                found = connection.execute(query).scalar_one()
        return bytes.fromhex(found)
