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
MAX_CLUSTERS = 100
"""Clusters that get a name, those with the most conversations."""
MAX_NAME_CHARS = 80
"""Characters of a name at most."""
_MAX_REASON_CHARS = 300
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
    cluster_count: int = 0


async def name_clusters(report: Clusters, model: Model) -> Clusters:
    """Return the same clusters with the names that a model gives them, and what that used.

    A cluster without a usable name keeps its signature alone, and a note says why. A model that only answers from what
    is kept, and has nothing, leaves everything as it is.

    Raises:
        StoreError: replies that are kept cannot be read or written.
    """
    some = report.clusters[:MAX_CLUSTERS]
    batches = [some[start : start + BATCH] for start in range(0, len(some), BATCH)]
    answers = [
        answer for answer in await asyncio.gather(*(_ask(model, batch) for batch in batches)) if answer.cluster_count
    ]
    asked_count = sum(answer.cluster_count for answer in answers)
    if not answers:
        return report
    names_by_id = {name: text for answer in answers for name, text in answer.names.items()}
    firsts: dict[str, str] = {}
    for cluster in some:
        if cluster.id in names_by_id:
            firsts.setdefault(names_by_id[cluster.id].casefold(), cluster.id)
    names = {name: names_by_id[name] for name in firsts.values()}
    notes = [answer.note for answer in answers if answer.note is not None]
    if (repeated := len(names_by_id) - len(names)) > 0:
        notes.append(f"{_keeping(repeated)}: the model reused the name of another cluster")
    if (rest := len(report.clusters) - len(some)) > 0:
        notes.append(f"{_keeping(rest)}: only the first {MAX_CLUSTERS} are named")
    used = total(answer.usage for answer in answers)
    naming = Naming(model=one_line(model.name), asked=asked_count, named=len(names), usage=used, notes=tuple(notes))
    clusters = tuple(cluster.model_copy(update={"name": names.get(cluster.id)}) for cluster in report.clusters)
    return report.model_copy(update={"clusters": clusters, "naming": naming})


def naming_request(clusters: Sequence[Cluster]) -> Request:
    """Return the request for the names of some clusters."""
    prompt = Prompt(_PROMPT.read_text(encoding="utf-8").rstrip("\n"), _PROMPT.name, frozenset({"clusters"}))
    entries = [
        {
            "number": number,
            "title": cluster.title[:_MAX_REASON_CHARS],
            "words": ", ".join(cluster.words),
            "reasons": [example.reason[:_MAX_REASON_CHARS] for example in cluster.examples],
        }
        for number, cluster in enumerate(clusters, 1)
    ]
    return Request([HumanMessage(content=prompt.render({"clusters": entries}))], schema=GivenNames)


async def _ask(model: Model, clusters: Sequence[Cluster]) -> _Answer:
    """Return the names for some clusters; a model that fails gives none."""
    try:
        reply = await model.complete(naming_request(clusters))
        parsed = GivenNames.model_validate(reply.parsed, strict=True)
    except ValidationError as error:
        note = _without(clusters, f"the model's answer does not match the schema: {describe(error)}")
        return _Answer({}, note=note, cluster_count=len(clusters))
    except (ModelFault, RateLimited) as fault:
        if fault.kind == "not_recorded":
            return _Answer({})
        return _Answer({}, usage_of(fault), _without(clusters, str(fault)), len(clusters))
    names: dict[str, str] = {}
    for entry in parsed.names:
        name = " ".join(entry.name.split())
        if 1 <= entry.number <= len(clusters) and len(name) <= MAX_NAME_CHARS and any(map(str.isalnum, name)):
            names.setdefault(clusters[entry.number - 1].id, one_line(name, MAX_NAME_CHARS))
    unnamed = [cluster for cluster in clusters if cluster.id not in names]
    note = _without(unnamed, f"the model gave no name of 1 to {MAX_NAME_CHARS} characters") if unnamed else None
    return _Answer(names, reply.usage, note, len(clusters))


def _without(clusters: Sequence[Cluster], why: str) -> str:
    return f"{_keeping(len(clusters))}: {one_line(why, 300)}"


def _keeping(number: int) -> str:
    return f"{count(number, 'cluster')} {'keeps its signature' if number == 1 else 'keep their signatures'}"
