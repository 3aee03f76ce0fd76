"""What a system retrieved, turn by turn, compared with what it should have: context precision and context recall."""

from __future__ import annotations

import json
from abc import abstractmethod
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate
from typing import Any, Unpack, cast

from vivavoce.comparing.text import fold
from vivavoce.comparing.thresholds import mean
from vivavoce.errors import GraderFault
from vivavoce.messages import AnyMessage
from vivavoce.metrics.config import MetricConfig
from vivavoce.metrics.exact.tool_calls import of_tools
from vivavoce.metrics.measuring import ExactMetric, Measured, MeasuringOptions, Part
from vivavoce.metrics.types import MultiTurnEvaluationInput
from vivavoce.records.score import Finding, shorten, turn_label
from vivavoce.records.trajectory import call_records
from vivavoce.work_time import counted_work

KEY = "reference_contexts"
_TEXTS = ("text", "content", "page_content")
_SHOWN = 3
"""Misses that the reason tells; the findings have all."""


@dataclass(frozen=True, slots=True)
class Retrieved:
    """One thing that was retrieved: its id, if it has one, and its text without capitals and superfluous spaces."""

    id: str | None
    text: str

    @property
    def name(self) -> str:
        """What a reader knows it by."""
        return self.id or shorten(self.text, 60) or ""


@dataclass(frozen=True, slots=True)
class Look:
    """What was retrieved and what should have been, in one turn, or with `turn` None in all that is measured."""

    turn: int | None
    retrieved: Sequence[Retrieved]
    wanted: Sequence[str]


class ContextMetric(ExactMetric):
    """Compares what was retrieved with the contexts that a row names; a subclass says which share it gives."""

    verdict: str

    def __init__(self, config: MetricConfig, tools: Sequence[str] | None, **options: Unpack[MeasuringOptions]) -> None:
        super().__init__(config, **options)
        self.tools = tools

    @abstractmethod
    def share(self, look: Look) -> tuple[Sequence[str], int]:
        """Return what lowers the score, by name, and the number of things of which it is a share."""

    @property
    def parameters(self) -> Mapping[str, object]:
        """The tools that retrieve."""
        return {"tools": None if self.tools is None else sorted(self.tools)}

    def measure(self, part: Part) -> Measured:
        """Compare each turn for which the row says what should be retrieved."""
        wanted = wanted_contexts(part.metric_input)
        if wanted is None:
            return Measured(None, f"the row does not say what should be retrieved: context: {{{KEY}: [...]}}")
        shares = [(look, *self.share(look)) for look in self._looks(part, wanted)]
        counted = [(look, missed, number) for look, missed, number in shares if number]
        if not counted:
            return Measured(None, "there is nothing to compare in these turns")
        score = float(mean([Fraction(number - len(missed), number) for _, missed, number in counted]))
        findings = [self._finding(look, name) for look, missed, _ in counted for name in missed]
        return Measured(score, _reason(findings), findings=findings)

    def _looks(self, part: Part, wanted: Sequence[str] | Sequence[Sequence[str] | None]) -> Iterator[Look]:
        each = [[*retrieved_contexts(turn, self.tools)] for turn in part.turns]
        if all(isinstance(one, str) for one in wanted):
            yield Look(None, [one for turn in each for one in turn], cast("Sequence[str]", wanted))
            return
        for number, found in enumerate(each, part.first):
            one = wanted[number]
            if one is not None:
                yield Look(number, found, one)

    def _finding(self, look: Look, name: str) -> Finding:
        return Finding(kind="context", what=name, verdict=self.verdict, state="fail", turn=look.turn)


class ContextRecallMetric(ContextMetric):
    """Gives the share of a turn's wanted contexts that were retrieved in it; the score is the mean over the turns.

    Retrieved contexts are the `retrieval_context` of messages and the results of tools, or of the named `tools`; a
    result that is a JSON list has one context per entry. The row names what is wanted, by id or by a text in
    it: `context: {reference_contexts: [...]}`, with a list for each turn (null skips a turn), or one list
    for all turns together. From 0 to 1; higher is better. Turns in which nothing is wanted do not count.
    Known failures: a context that says the same in other words is not found; a retrieved context may be unused
    (`faithfulness` checks that).

    Source: ID-based and non-LLM context recall of Ragas, without similarity.
    """

    verdict = "not retrieved"

    def __init__(self, *, tools: Sequence[str] | None = None, **options: Unpack[MeasuringOptions]) -> None:
        super().__init__(_config(self, "context_recall", "What share of the wanted was retrieved?"), tools, **options)

    def share(self, look: Look) -> tuple[Sequence[str], int]:
        """Return the wanted contexts that were not retrieved, of all that are wanted."""
        ids = {had.id for had in look.retrieved}
        text = "\n".join(had.text for had in look.retrieved)  # a folded text has no line break
        with counted_work() as check_time:
            missing: list[str] = []
            for wanted in look.wanted:
                check_time()
                if wanted not in ids and fold(wanted) not in text:
                    missing.append(wanted)
        return missing, len(look.wanted)


class ContextPrecisionMetric(ContextMetric):
    """Gives the share of a turn's retrieved contexts that were wanted; the score is the mean over the turns.

    What is retrieved and what is wanted are as in `context_recall`. From 0 to 1; higher is better. Turns in which
    nothing was retrieved do not count; if the row wants nothing for a turn, all that was retrieved was too much.
    Known failure: the order of contexts is ignored, though it matters to some models.

    Source: ID-based context precision of Ragas.
    """

    verdict = "not wanted"

    def __init__(self, *, tools: Sequence[str] | None = None, **options: Unpack[MeasuringOptions]) -> None:
        super().__init__(
            _config(self, "context_precision", "What share of the retrieved was wanted?"), tools, **options
        )

    def share(self, look: Look) -> tuple[Sequence[str], int]:
        """Return the retrieved contexts that were not wanted, of all that were retrieved."""
        ids, texts = frozenset(look.wanted), dict.fromkeys(map(fold, look.wanted))
        open_places = [place for place, had in enumerate(look.retrieved) if had.id not in ids and had.text not in texts]
        with counted_work() as check_time:
            hits = _places_with(texts, [look.retrieved[place].text for place in open_places], check_time)
        spare = [look.retrieved[place].name for number, place in enumerate(open_places) if number not in hits]
        return spare, len(look.retrieved)


def _places_with(wanted: Iterable[str], texts: Sequence[str], check_time: Callable[[], None]) -> set[int]:
    """Return the places of the texts that contain any of the wanted ones, each searched for in all of them at once."""
    joined = "\n".join(texts)  # a folded text has no line break
    starts = [0, *accumulate(len(text) + 1 for text in texts)]
    hits: set[int] = set()
    for text in wanted:
        check_time()
        if len(hits) == len(texts):
            break
        start = joined.find(text)
        while start >= 0:
            place = bisect_right(starts, start) - 1
            hits.add(place)
            start = joined.find(text, starts[place + 1])
    return hits


def wanted_contexts(given: MultiTurnEvaluationInput) -> Sequence[str] | Sequence[Sequence[str] | None] | None:
    """Return the wanted contexts: for all turns together, or a list for each; None where the row does not say.

    Raises:
        GraderFault: they are no such list, or there is not one for each turn.
    """
    known: Any = (given.context or {}).get(KEY)
    if known is None and given.sample is not None:
        known = given.sample.metadata.get(KEY)
    if known is None or _texts(known):
        return known
    if not isinstance(known, list) or not all(one is None or _texts(one) for one in cast("list[Any]", known)):
        raise _unusable("a list of ids and texts, or one per turn (null skips a turn)", known)
    turns = sum(message.role == "user" for message in given.messages)
    if len(cast("list[Any]", known)) < turns:
        raise _unusable(f"a list for each of the {turns} turns", known)
    return cast("list[list[str] | None]", known)


def retrieved_contexts(turn: Sequence[AnyMessage], tools: Sequence[str] | None) -> Iterator[Retrieved]:
    """Yield what was retrieved in a turn, in order: by these tools, None for every tool, and outside of tools."""
    records = [record for record in call_records(turn) if record.result is not None and record.was_made]
    results = {id(record.result) for record in records if of_tools([record.call], only=tools)}
    for message in turn:
        for one in message.retrieval_context or ():
            yield _retrieved(one)
        if id(message) in results:
            yield from map(_retrieved, _entries(message.text))


def _entries(text: str) -> list[Any]:
    try:
        read = json.loads(text)
    except (ValueError, RecursionError):  # plain text, or nested too deeply to be a list of contexts
        return [text]
    return cast("list[Any]", read) if isinstance(read, list) else [text]


def _retrieved(one: Any) -> Retrieved:
    if not isinstance(one, dict):
        return Retrieved(None, fold(str(one)))
    entry = cast("dict[str, Any]", one)
    words = next((entry[key] for key in _TEXTS if isinstance(entry.get(key), str)), None)
    text = json.dumps(entry, ensure_ascii=False) if words is None else words
    return Retrieved(None if entry.get("id") is None else str(entry["id"]), fold(text))


def _texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) and one.strip() for one in cast("list[Any]", value))


def _unusable(rule: str, value: Any) -> GraderFault:
    return GraderFault(f"context: {KEY} is {rule}", kind="format", evidence=shorten(repr(value), 200), blame="suite")


def _config(metric: ExactMetric, name: str, description: str) -> MetricConfig:
    return MetricConfig(class_name=type(metric).__name__, name=name, description=description)


def _reason(findings: Sequence[Finding]) -> str:
    if not findings:
        return "exactly what is wanted"
    told = "; ".join(
        finding.what if finding.turn is None else f"{turn_label(finding.turn)}: {finding.what}"
        for finding in findings[:_SHOWN]
    )
    more = f"; and {len(findings) - _SHOWN} more" if len(findings) > _SHOWN else ""
    return f"{findings[0].verdict}: {told}{more}"
