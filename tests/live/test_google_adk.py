"""Sessions as google-adk itself makes and writes them: `make live` installs it in `.venv-adk`."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from features.formats.translation import read_values
from vivavoce.conversations.reading import detect, read
from vivavoce.features.formats.google_adk import FORMAT

PYTHON = Path(__file__).parents[2] / ".venv-adk" / "bin" / "python"
PROGRAM = """
import asyncio, json, sys
from google.adk.events import Event
from google.adk.sessions import DatabaseSessionService, InMemorySessionService
from google.genai.types import Content, FunctionCall, FunctionResponse, Part

BOTH = (False, True)

def said(author, role, part, **more):
    return Event(author=author, invocation_id="i", content=Content(role=role, parts=[part]), **more)

async def fill(service):
    session = await service.create_session(app_name="app", user_id="ann")
    call = FunctionCall(id="c1", name="weather", args={"city": "Rome"})
    result = FunctionResponse(id="c1", name="weather", response={"result": "rain"})
    for event in (
        said("user", "user", Part(text="And in Rome?")),
        said("router", "model", Part(function_call=call)),
        said("router", "user", Part(function_response=result)),
        said("forecaster", "model", Part(text="It rains.")),
    ):
        await service.append_event(session, event)
    return await service.get_session(app_name="app", user_id="ann", session_id=session.id)

async def main():
    stored = await fill(InMemorySessionService())
    dumps = [stored.model_dump_json(by_alias=camel, exclude_none=bare) for camel in BOTH for bare in BOTH]
    database = DatabaseSessionService(db_url="sqlite+aiosqlite:///" + sys.argv[1])
    await fill(database)
    await database.close()
    print(json.dumps([json.loads(dump) for dump in dumps]))

asyncio.run(main())
"""


@pytest.mark.live
@pytest.mark.skipif(not PYTHON.exists(), reason="no google-adk: `make live` installs it in .venv-adk")
def test_a_session_is_read_in_each_way_that_the_package_writes_it(tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    done = subprocess.run([PYTHON, "-W", "ignore", "-c", PROGRAM, path], capture_output=True, text=True, check=True)
    sessions: list[Any] = json.loads(done.stdout.splitlines()[-1])
    rows, loss = read_values(FORMAT, sessions)
    rows += [row for _, row in read(path, detect(path), loss)]
    assert len(rows) == 5
    for row in rows:
        told = [(message["role"], message.get("name"), message["content"]) for message in row["messages"]]
        assert told == [
            ("user", None, "And in Rome?"),
            ("assistant", "router", None),
            ("tool", "weather", "rain"),
            ("assistant", "forecaster", "It rains."),
        ]
        assert (row["metadata"]["app_name"], row["metadata"]["user_id"]) == ("app", "ann")
        assert row["messages"][1]["tool_calls"][0]["id"] == row["messages"][2]["tool_call_id"] == "c1"
    assert loss.is_lossless
