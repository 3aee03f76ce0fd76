"""OpenAI's chat completions: messages as an endpoint takes them, without what only we add.

Source: the `messages` parameter of OpenAI's chat completions reference. They are read as our own rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, cast

from vivavoce.conversations.format import Format, Loss, Record, Row
from vivavoce.conversations.own_rows import FORMAT as NATIVE
from vivavoce.messages import NOT_ON_THE_WIRE


def _write(rows: Iterable[Row], loss: Loss) -> Iterator[Any]:
    for row in rows:
        loss.at(row)
        messages: list[Row] = []
        for index, message in enumerate(cast("list[Row]", row.get("messages") or [])):
            loss.left_out(message, NOT_ON_THE_WIRE, index)
            messages.append({key: value for key, value in message.items() if key not in NOT_ON_THE_WIRE})
        yield {"messages": messages}


def _fits(record: Record) -> bool:
    return False  # what it writes is a row of ours


FORMAT = Format("openai", "OpenAI chat completions", _fits, NATIVE.read, _write, keeps_keys=True)
