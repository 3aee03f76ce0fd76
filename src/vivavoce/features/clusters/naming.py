"""Names for clusters by a model: it sees the groups that code has found, and changes none of them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from pydantic import BaseModel, ConfigDict, ValidationError

from vivavoce.errors import ModelFault, RateLimited
from vivavoce.features.clusters.records import Cluster, Clusters, Naming
from vivavoce.messages import HumanMessage, describe
from vivavoce.metrics.prompts import Prompt
from vivavoce.models.model import Model, Request
from vivavoce.records.score import Usage, total, usage_of
from vivavoce.report.text import count, one_line

BATCH = 20
"""Clusters in one request."""
MOST = 100
"""Clusters that get a name, those with the most conversations."""
LONGEST = 80
"""Characters of a name at most."""
_SHOWN = 300
"""Characters of a signature and of a reason that the model sees."""
_PROMPT = Path(__file__).with_name("naming.txt")


class GivenName(BaseModel):
    """The name of a group, by its number."""

    model_config = ConfigDict(extra="forbid")

    number: int
    name: str


class GivenNames(BaseModel):
    """What the model answers."""

    model_config = ConfigDict(extra="forbid")

    names: list[GivenName]


class _Answer(NamedTuple):
    """The names for a batch by the ids of clusters; `note` says which have none and why.

    `asked` is how many were asked for: none where only kept answers count, and there is none.
    """

    names: Mapping[str, str]
    usage: Usage | None = None
    note: str | None = None
    asked: int = 0


async def name_clusters(found: Clusters, model: Model) -> Clusters:
    """Return the same clusters with the names that a model gives them, and what that used.

    A cluster without a usable name keeps its signature alone, and a note says why. A model that only answers from what
    is kept, and has nothing, leaves everything as it is.

    Raises:
        StoreError: replies that are kept cannot be read or written.
    """
    some = found.clusters[:MOST]
    batches = [some[start : start + BATCH] for start in range(0, len(some), BATCH)]
    answers = [one for one in await asyncio.gather(*(_ask(model, batch) for batch in batches)) if one.asked]
    asked = sum(answer.asked for answer in answers)
    if not answers:
        return found
    given = {name: text for answer in answers for name, text in answer.names.items()}
    firsts: dict[str, str] = {}
    for one in some:
        if one.id in given:
            firsts.setdefault(given[one.id].casefold(), one.id)
    names = {name: given[name] for name in firsts.values()}
    notes = [answer.note for answer in answers if answer.note is not None]
    if (repeated := len(given) - len(names)) > 0:
        notes.append(f"{_keeping(repeated)}: the model reused the name of another cluster")
    if (rest := len(found.clusters) - len(some)) > 0:
        notes.append(f"{_keeping(rest)}: only the first {MOST} are named")
    used = total(answer.usage for answer in answers)
    naming = Naming(model=one_line(model.name), asked=asked, named=len(names), usage=used, notes=tuple(notes))
    clusters = tuple(cluster.model_copy(update={"name": names.get(cluster.id)}) for cluster in found.clusters)
    return found.model_copy(update={"clusters": clusters, "naming": naming})


def naming_request(clusters: Sequence[Cluster]) -> Request:
    """Return the request for the names of some clusters."""
    prompt = Prompt(_PROMPT.read_text(encoding="utf-8").rstrip("\n"), _PROMPT.name, frozenset({"clusters"}))
    shown = [
        {
            "number": number,
            "title": cluster.title[:_SHOWN],
            "words": ", ".join(cluster.words),
            "reasons": [example.reason[:_SHOWN] for example in cluster.examples],
        }
        for number, cluster in enumerate(clusters, 1)
    ]
    return Request([HumanMessage(content=prompt.render({"clusters": shown}))], schema=GivenNames)


async def _ask(model: Model, clusters: Sequence[Cluster]) -> _Answer:
    """Return the names for some clusters; a model that fails gives none."""
    try:
        reply = await model.complete(naming_request(clusters))
        given = GivenNames.model_validate(reply.parsed, strict=True)
    except ValidationError as error:
        note = _without(clusters, f"the model's answer does not match the schema: {describe(error)}")
        return _Answer({}, note=note, asked=len(clusters))
    except (ModelFault, RateLimited) as fault:
        if fault.kind == "not_recorded":
            return _Answer({})
        return _Answer({}, usage_of(fault), _without(clusters, str(fault)), len(clusters))
    names: dict[str, str] = {}
    for one in given.names:
        name = " ".join(one.name.split())
        if 1 <= one.number <= len(clusters) and len(name) <= LONGEST and any(map(str.isalnum, name)):
            names.setdefault(clusters[one.number - 1].id, one_line(name, LONGEST))
    unnamed = [cluster for cluster in clusters if cluster.id not in names]
    note = _without(unnamed, f"the model gave no name of 1 to {LONGEST} characters") if unnamed else None
    return _Answer(names, reply.usage, note, len(clusters))


def _without(clusters: Sequence[Cluster], why: str) -> str:
    return f"{_keeping(len(clusters))}: {one_line(why, 300)}"


def _keeping(number: int) -> str:
    return f"{count(number, 'cluster')} {'keeps its signature' if number == 1 else 'keep their signatures'}"
