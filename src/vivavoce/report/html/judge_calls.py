"""Calls of a judge on a page: the messages of the request, the reply, and what it took."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from vivavoce.messages import AnyMessage
from vivavoce.records.replies import JudgeCall
from vivavoce.records.score import to_number
from vivavoce.report.html.content.legible import legible
from vivavoce.report.html.content.written import Written, written
from vivavoce.report.html.wording import indented
from vivavoce.report.judge_calls import about, asked_text, facts, replied_text
from vivavoce.safe_text import safe

TextLink = Callable[[int, int | None], str]
"""Returns the address of a message of a call in full, or of the reply; both are counted from 0."""

_ROLES: Mapping[str, str] = {"system": "System", "user": "User", "assistant": "Assistant", "tool": "Tool"}


@dataclass(frozen=True, slots=True)
class Said:
    """A message of a request, as it was written."""

    role: str
    text: Written


@dataclass(frozen=True, slots=True)
class ShownCall:
    """A call as a page shows it; `reply` is None where none is kept, `settings` and `schema` may be empty."""

    number: int
    about: str
    request: list[Said]
    reply: Written | None
    repair: list[Said]
    facts: list[tuple[str, str]]
    settings: str
    schema: str
    is_repaired: bool


def shown_calls(calls: Sequence[JudgeCall], first: int, link: TextLink) -> list[ShownCall]:
    """Return calls as a page shows them; `first` is the place of the first of them among all, from 0."""
    return [_shown(call, first + place, link) for place, call in enumerate(calls)]


def _shown(call: JudgeCall, place: int, link: TextLink) -> ShownCall:
    return ShownCall(
        number=to_number(place),
        about=about(call),
        request=[_said(one, link(place, number)) for number, one in enumerate(call.messages)],
        reply=None if call.text is None else _written(replied_text(call), link(place, None), raw=False),
        repair=[_said(one, None) for one in call.repair],
        facts=facts(call),
        settings=safe(", ".join(f"{name} {json.dumps(value)}" for name, value in call.settings.items())),
        schema="" if call.answer_schema is None else indented(call.answer_schema),
        is_repaired=bool(call.applied.get("repaired")),
    )


def _said(message: AnyMessage, link: str | None) -> Said:
    return Said(_ROLES.get(message.role, message.role), _written(asked_text(message), link, raw=True))


def _written(text: str, link: str | None, *, raw: bool) -> Written:
    return written(legible(text), "data", (), raw=raw, rest=link)
