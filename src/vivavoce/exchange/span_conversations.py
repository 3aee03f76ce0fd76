"""Spans read as conversations, whichever conventions they follow: one file may have spans of several."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, cast

from vivavoce.exchange import gen_ai, openinference
from vivavoce.exchange.format import ROW_FIELDS, Row
from vivavoce.exchange.grouping import Member
from vivavoce.exchange.loss import Loss
from vivavoce.exchange.parts import parsed
from vivavoce.exchange.records import Place, Record
from vivavoce.exchange.shapes import fields_in, first_in
from vivavoce.exchange.spans import members
from vivavoce.exchange.steps import Step, hand_down
from vivavoce.exchange.traced import conversations

OURS = "vivavoce.row"
"""The attribute in which our writer keeps the fields of a row that the conventions have no name for."""

_FIELDS = ROW_FIELDS - {"id", "messages", "labels"}
_METADATA = "metadata."
_SHAPES = {"tags": list, "metadata": dict}
_USERS = ("user.id", "enduser.id", "langfuse.user.id", "traceloop.association.properties.user_id")


def read(records: Iterable[Record], loss: Loss) -> Iterator[tuple[Place, Row]]:
    """Yield a row for each conversation that spans and log records tell of."""
    return read_members(members(records, loss), loss)


def read_members(spans: Iterable[Member], loss: Loss) -> Iterator[tuple[Place, Row]]:
    """Yield a row for each conversation that spans and log records in our shape tell of."""
    return conversations(spans, _steps, _beside, loss)


def _steps(of_group: list[Member], loss: Loss) -> list[Step]:
    spans = _with_logs([cast("Row", member.value) for member in of_group])
    steps: list[Step] = []
    for span in spans:
        known = span["attributes"]
        is_open = "gen_ai.input.messages" not in known and openinference.is_open_inference(known)
        steps.append((openinference if is_open else gen_ai).step_of(span, loss))
    hand_down(steps)
    return steps


def _with_logs(found: list[Row]) -> list[Row]:
    """Return spans with the log records that belong to them; those without their span are one themselves."""
    spans: dict[tuple[str, str], Row] = {}
    for span in found:
        if not span.get("is_log"):
            spans[span["trace"], span["id"]] = span
    alone: list[Row] = []
    for log in found:
        if log.get("is_log"):
            key = (log["trace"], log["id"])
            if log["id"] and key in spans:
                spans[key]["events"] += log["events"]
            else:
                alone.append(log)
                spans[key] = log
    return [span for span in found if not span.get("is_log") or any(span is log for log in alone)]


def _beside(of_group: list[Member], loss: Loss) -> Row:
    row: Row = {}
    labels: Row = {}
    notes: Row = {}
    metadata: Row = {}
    for member in of_group:
        known = cast("Row", member.value["attributes"])
        ours = fields_in(parsed(known.get(OURS)))
        row |= {
            key: value for key, value in ours.items() if key in _FIELDS and isinstance(value, _SHAPES.get(key, object))
        }
        for name, score, others in (*gen_ai.scores_of(member.value), *openinference.scores_of(known)):
            labels[name] = score
            if others:
                notes[name] = others
        user = first_in(known, _USERS)
        if user is not None:
            metadata.setdefault("user", str(user))
        metadata |= fields_in(parsed(known.get("metadata")))
        for key, value in known.items():
            if key.startswith(_METADATA):
                metadata[key[len(_METADATA) :]] = value
        tags = parsed(known.get("tag.tags"))
        if isinstance(tags, list):
            row["tags"] = sorted(
                {*map(str, cast("list[Any]", row.get("tags") or ())), *map(str, cast("list[Any]", tags))}
            )
    if labels:
        row["labels"] = {**labels, **fields_in(row.get("labels"))}
    if notes:
        metadata["scores"] = notes
    return {**row, "metadata": {**metadata, **fields_in(row.get("metadata"))}}
