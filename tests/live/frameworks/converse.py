"""Holds a conversation with an object of a framework, in the Python that has the framework, and prints it as JSON.

converse.py FILE:NAME PACKAGE KEYS-AS-JSON MESSAGES…
"""

from __future__ import annotations

import asyncio
import json
import sys
import uuid
from importlib.metadata import version
from pathlib import Path

from vivavoce.messages import HumanMessage
from vivavoce.pacing.limits import Budget
from vivavoce.pacing.loops import run
from vivavoce.plugins import load_object
from vivavoce.targets.dialogue import Dialogue, open_channel
from vivavoce.targets.function import as_target
from vivavoce.targets.target import Opening


async def main(reference: str, package: str, keys: str, *said: str) -> None:
    target = as_target(load_object(reference, Path(__file__).resolve().parents[1] / "agents"), **json.loads(keys))
    channel = open_channel(target, limit=2, budget=Budget(), timeout=60.0, retries=0)
    conversations = [Dialogue(channel, lambda: Opening(uuid.uuid4().hex, "sample")) for _ in range(2)]

    async def hold(dialogue: Dialogue) -> list[dict[str, object]]:
        return [
            json.loads((await dialogue.say(HumanMessage(content=one))).model_dump_json(exclude_none=True))
            for one in said
        ]

    turns, others = await asyncio.gather(*map(hold, conversations))
    ids = [dialogue.session_id for dialogue in conversations]
    for dialogue in conversations:
        await dialogue.close()
    await target.close()
    found = {"name": target.name, "version": version(package), "ids": ids, "turns": turns, "others": others}
    print("\n" + json.dumps(found))


run(main(*sys.argv[1:]))
