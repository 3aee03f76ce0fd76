"""`ExtractTool`: the facts in a reply, such as dates, sums and addresses, and the sentences about something."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from vivavoce.metrics.exact.personal_patterns import checked_region
from vivavoce.models.custom import ModelLike
from vivavoce.pacing.waiting import wait_for
from vivavoce.penelope.tools.analysis import LISTED, READ, SHOWN, AnalysisTool, Output, Plan, Source, excerpt, text_of
from vivavoce.penelope.tools.sentences import sentences, stems
from vivavoce.penelope.tools.spans import Kind, Span, find_spans
from vivavoce.penelope.tools.tool import ToolResult


class Entity(BaseModel):
    """Something named in a reply; `context` is the sentence it stands in."""

    model_config = ConfigDict(extra="forbid")

    text: str = Field(description="word by word as in the text")
    type: str = Field(description="such as product, person, policy, date, amount, place")
    context: str
    confidence: float = Field(ge=0, le=1)


class Relationship(BaseModel):
    """How two things in a reply belong together."""

    model_config = ConfigDict(extra="forbid")

    subject: str
    relation: str
    object: str


class NamedValue(BaseModel):
    """A value that was asked for, under a name."""

    model_config = ConfigDict(extra="forbid")

    name: str
    value: str


class ExtractionResult(BaseModel):
    """What the model finds in a reply; `values` is what was asked for, under names."""

    model_config = ConfigDict(extra="forbid")

    entities: list[Entity]
    relationships: list[Relationship]
    values: list[NamedValue]
    confidence: float = Field(ge=0, le=1)


class ExtractTool(AnalysisTool):
    """Picks dates, quantities, money, numbers, addresses and the sentences about a target out of a reply.

    By rules, the output lists texts as they stand in the reply; dates also as ISO 8601, with both readings where the
    order of day and month is open. `numbers` are plain ones and those of quantities, never digits of a date, a time, a
    sum of money, an address or a phone number. `region` is the country in whose plan phone numbers are looked up.

    With a model, each entity and value is `verified` to stand in the reply, or marked as not.

    Raises:
        UsageError: no country has the code `region`.
    """

    name = "extract_information"
    description = "Pick facts out of the assistant's latest answer, or another text: dates, amounts, contacts, names."
    when_to_use = "when the goal hangs on exact figures, dates, names or contacts in an answer."
    when_not_to_use = "to judge tone or quality, or for what you can read in one short sentence."
    examples = 'good: {"extraction_target": "refund timeframe"}; bad: {"extraction_target": "everything"}'
    parameters: Mapping[str, Any] = {
        "type": "object",
        "properties": {
            "extraction_target": {"type": "string", "description": "what to look for"},
            "response_text": {"type": "string", "description": "left out: the assistant's latest answer"},
        },
        "required": ["extraction_target"],
        "additionalProperties": False,
    }

    def __init__(self, model: ModelLike | None = None, *, region: str | None = None) -> None:
        super().__init__(model)
        self.region = checked_region(self.name, region)

    def execute(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, response_text: str | None = None, extraction_target: str = ""
    ) -> ToolResult:
        """Extract from a reply."""
        return wait_for(self.aexecute(response_text, extraction_target))

    async def aexecute(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, response_text: str | None = None, extraction_target: str = ""
    ) -> ToolResult:
        """Extract from a reply."""
        return await self.carry_out(partial(self._plan, response_text, extraction_target))

    def _plan(self, response_text: object, extraction_target: object) -> Plan[ExtractionResult]:
        text, target = self.reply(response_text), text_of("extraction_target", extraction_target)
        return Plan(
            prompt="extract",
            values={"response": text[:SHOWN], "target": target[:SHOWN]},
            shape=ExtractionResult,
            read=partial(_read, text),
            rules=partial(_found, text[:READ], target[:READ], self.region),
            length=len(text),
        )


_KEYS: Mapping[Kind, str] = {
    "date": "dates",
    "time": "times",
    "quantity": "quantities",
    "money": "money",
    "number": "numbers",
    "email": "emails",
    "phone": "phones",
    "url": "urls",
    "code": "codes",
}


def _found(text: str, target: str, region: str | None) -> Output:
    spans = find_spans(text, region)
    listed = {key: _texts(spans, kind) for kind, key in _KEYS.items()}
    listed["relevant_content"] = _relevant(text, target)
    findings = [_told(key, values) for key, values in listed.items() if values]
    output: Output = {key: values[:LISTED] for key, values in listed.items()}
    output["findings"] = findings or ["Extraction: nothing found"]
    return output


def _texts(spans: list[Span], kind: Kind) -> list[str]:
    """Return what is listed of a kind, each once."""
    if kind == "number":
        texts = [part for span in spans for part in _numbers(span)]
    elif kind == "date":
        texts = [_dated(span) for span in spans if span.kind == kind]
    else:
        texts = [span.text for span in spans if span.kind == kind]
    return list(dict.fromkeys(texts))


def _numbers(span: Span) -> list[str]:
    if span.kind == "quantity":
        return span.value.partition(" ")[0].split("-")
    return [span.text] if span.kind == "number" else []


def _dated(span: Span) -> str:
    told = span.value.startswith("-") or span.value in (span.text, span.text.lower())  # without a year, or ISO already
    return span.text if told else f"{span.text} ({span.value})"


def _relevant(text: str, target: str) -> list[str]:
    """Return the sentences with most of the words of a target, in their order."""
    wanted = stems(target).keys()
    scored = [(len(wanted & stems(one).keys()), i, one) for i, one in enumerate(sentences(text))]
    best = sorted((one for one in scored if one[0]), key=lambda one: (-one[0], one[1]))[: LISTED // 3]
    return [excerpt(one) for _, _, one in sorted(best, key=lambda one: one[1])]


def _told(key: str, values: list[str]) -> str:
    more = f" and {len(values) - 5} more" if len(values) > 5 else ""
    return f"{key.replace('_', ' ').capitalize()}: {'; '.join(values[:5])}{more}"


def _read(text: str, answer: ExtractionResult) -> Output:
    source = Source(text)
    entities = [{**one.model_dump(), "verified": source.holds(one.text)} for one in answer.entities[:LISTED]]
    values = [{**one.model_dump(), "verified": source.holds(one.value)} for one in answer.values[:LISTED]]
    findings = [_named(one.type, one.text, source) for one in answer.entities[:LISTED]]
    findings += [_named(one.name, one.value, source) for one in answer.values[:LISTED]]
    return {
        "extracted_entities": entities,
        "context_for_each": [one["context"] for one in entities],
        "relationships": [one.model_dump() for one in answer.relationships[:LISTED]],
        "values": values,
        "confidence": answer.confidence,
        "findings": findings or ["Extraction: nothing found"],
    }


def _named(name: str, text: str, source: Source) -> str:
    doubt = "" if source.holds(text) else " (not verified: it does not stand in the answer)"
    return excerpt(f"{name}: {text}") + doubt
