"""Versions of recorded conversations: as they are, with a defect each, and with harmless edits, as rows of a dataset.

A metric that measures them all is tested: it should see the defects and not mind the rest. What was done to a
conversation is in the `metadata` of its row, under `metric_test`; a judge does not see that.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from vivavoce.errors import UsageError, did_you_mean
from vivavoce.messages import AnyMessage
from vivavoce.records.score import conversation_label
from vivavoce.samples.sample import Sample
from vivavoce.testing.defects import DEFECTS, SEEN_BY, plant
from vivavoce.testing.defects.harmless_edits import HARMLESS, PERSUASIVE, new_names, with_names
from vivavoce.testing.defects.planted import Planted, by_user
from vivavoce.testing.defects.replies import switched_language

Kind = Literal["as_it_is", "defect", "harmless", "persuasion"]
"""What a version is: the conversation itself, one that is worse, one that is as good, or a defect with flattery."""

OWN = Path(__file__).with_name("conversations.jsonl")
"""Conversations that went well, for those who have none at hand."""

_AS_IT_IS = ("id", "trial", "tags", "messages", "metadata")
"""Fields of a row in which names stay, or are others already."""

KEY = "metric_test"
"""Where the metadata of a row say which version it is."""


class Version(BaseModel):
    """Which version of which conversation a row is.

    `of` names the conversation, `edits` what was done to it, in order. A defect is made in `turn`, an index from 0, of
    `turns`. `speaker` is the model that spoke, where the row says so.
    """

    model_config = ConfigDict(frozen=True)

    of: str
    kind: Kind
    edits: tuple[str, ...] = ()
    turn: int | None = None
    turns: int = 0
    speaker: str | None = None

    @property
    def edit(self) -> str:
        """The defect, or else the edit, by name."""
        return self.edits[0] if self.edits else ""


def chosen_defects(metrics: Iterable[str], requested_names: Sequence[str] = ()) -> list[str]:
    """Return the defects to plant: those that are named, or else those that any of the metrics is there to see.

    Raises:
        UsageError: a name is not that of a defect.
    """
    if unknown := [name for name in requested_names if name not in DEFECTS]:
        raise UsageError(
            f"no defect '{unknown[0]}'{did_you_mean(unknown[0], DEFECTS)}; see: viva validate list defects"
        )
    if requested_names:
        return list(dict.fromkeys(requested_names))
    seen = [set(SEEN_BY.get(metric, DEFECTS)) for metric in metrics]
    return [name for name in DEFECTS if any(name in defects for defects in seen)]


def as_they_are(samples: Iterable[Sample]) -> Iterator[dict[str, Any]]:
    """Yield the rows of conversations without a change."""
    for sample in samples:
        yield _row(sample, sample.messages or (), _version(sample, "as_it_is", (), sample.messages or ()))


def versions(samples: Iterable[Sample], defects: Sequence[str], seed: int = 0) -> Iterator[dict[str, Any]]:
    """Yield the rows of conversations with each defect, and with each harmless edit, that finds a place.

    One defect of each conversation, in turn, comes with each persuasive edit as well. A reply in another language does
    not: words in the user's own would undo it in part.
    """
    for number, sample in enumerate(samples):
        messages = sample.messages or ()
        planted = {name: planted_case for name in defects if (planted_case := plant(name, messages, seed + number))}
        for name, planted_case in planted.items():
            version = _version(sample, "defect", (name,), planted_case.messages, planted_case.root.turn)
            yield _row(sample, planted_case.messages, version)
        for name, edit in HARMLESS.items():
            if edited := edit(list(messages), Random(f"{name} {seed + number}")):
                row = _row(sample, edited, _version(sample, "harmless", (name,), edited))
                names = new_names(name, messages, Random(f"{name} {seed + number}"))
                yield {key: value if key in _AS_IT_IS else with_names(value, names) for key, value in row.items()}
        persuadable = {name: case for name, case in planted.items() if name != switched_language.__name__}
        if persuadable:
            yield from _persuading(sample, persuadable, number, seed)


def _persuading(sample: Sample, planted: Mapping[str, Planted], number: int, seed: int) -> Iterator[dict[str, Any]]:
    name = list(planted)[number % len(planted)]
    for persuasion in PERSUASIVE:
        if edited := HARMLESS[persuasion](list(planted[name].messages), Random(f"{persuasion} {seed + number}")):
            version = _version(sample, "persuasion", (name, persuasion), edited, planted[name].root.turn)
            yield _row(sample, edited, version)


def _version(
    sample: Sample, kind: Kind, edits: tuple[str, ...], messages: Sequence[AnyMessage], turn: int | None = None
) -> Version:
    speaker = sample.metadata.get("model")
    return Version(
        of=conversation_label(sample.id, sample.trial or 0),
        kind=kind,
        edits=edits,
        turn=turn,
        turns=sum(map(by_user, messages)),
        speaker=speaker if isinstance(speaker, str) else None,
    )


def _row(sample: Sample, messages: Sequence[AnyMessage], version: Version) -> dict[str, Any]:
    """Return a row; what is known of single turns is left out, for an edit may add or remove turns."""
    row: dict[str, Any] = json.loads(sample.row_text(set()))
    for name, of_turns in (("ground_truth", sample.per_turn), ("reference_tool_calls", sample.calls_per_turn)):
        if of_turns:
            row.pop(name, None)
    row.pop("expect", None)
    row["id"] = "~".join([sample.id, *version.edits])
    row["messages"] = [message.to_dict() for message in messages]
    row["metadata"] = {**sample.metadata, KEY: version.model_dump(mode="json")}
    return row


def require_recorded(samples: Iterable[Sample]) -> Iterator[Sample]:
    """Yield samples that hold a recorded conversation.

    Raises:
        UsageError: a sample is not a recorded conversation.
    """
    for number, sample in enumerate(samples, 1):
        if not sample.messages:
            raise UsageError(f"sample {number}, '{sample.id}', is not a recorded conversation: it has no messages")
        yield sample
