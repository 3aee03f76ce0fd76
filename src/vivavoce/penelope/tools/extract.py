"""`ExtractTool`: the facts in a reply, such as dates, sums and addresses, and the sentences about something."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from vivavoce.metrics.exact.personal_data import checked_region
from vivavoce.models.custom import ModelLike
from vivavoce.pacing.loops import wait_for
from vivavoce.penelope.tools.analysis import (
    MAX_ITEMS,
    MODEL_LIMIT,
    RULES_LIMIT,
    AnalysisTool,
    Output,
    Plan,
    Source,
    excerpt,
    text_of,
)
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

    By rules, the output lists texts as they are in the reply; dates also as ISO 8601, with both readings if day and
    month are ambiguous. `relevant_content` are the sentences with most words of the target; where none has
    any, those with a time, a sum or a contact, if the target means one. `numbers` are plain ones and those of
    quantities, never digits of a date, a time, a sum of money, an address or a phone number. `region` is the country
    whose phone numbering plan applies.

    With a model, each entity and value is `verified` to be in the reply, or marked as not.

    Raises:
        UsageError: no country has the code `region`.
    """

    name = "extract_information"
    description = "Pick dates, amounts, contacts and names out of an answer of the assistant."
    when_to_use = "when what you want hangs on exact figures, dates, names or contacts."
    when_not_to_use = "for what you can read in one short sentence."
    examples = 'good: {"extraction_target": "refund timeframe"}; bad: {"extraction_target": "everything"}'
    parameters: Mapping[str, Any] = {
        "type": "object",
        "properties": {
            "extraction_target": {"type": "string", "description": "what to look for"},
            "response_text": {"type": "string", "description": "left out: the latest answer"},
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
            values={"response": text[:MODEL_LIMIT], "target": target[:MODEL_LIMIT]},
            shape=ExtractionResult,
            read=partial(_output_of, text),
            rules=partial(_extract, text[:RULES_LIMIT], target[:RULES_LIMIT], self.region),
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


def _extract(text: str, target: str, region: str | None) -> Output:
    spans = find_spans(text, region)
    texts_by_key = {key: _texts(spans, kind) for kind, key in _KEYS.items()}
    texts_by_key["relevant_content"] = _relevant(text, target) or _of_kinds(text, target, spans)
    findings = [_finding(key, values) for key, values in texts_by_key.items() if values]
    output: Output = {key: values[:MAX_ITEMS] for key, values in texts_by_key.items()}
    output["findings"] = findings or ["Extraction: nothing found"]
    return output


def _texts(spans: list[Span], kind: Kind) -> list[str]:
    """Return what is listed of a kind, each once."""
    if kind == "number":
        texts = [part for span in spans for part in _numbers(span)]
    elif kind == "date":
        texts = [_date_text(span) for span in spans if span.kind == kind]
    else:
        texts = [span.text for span in spans if span.kind == kind]
    return list(dict.fromkeys(texts))


def _numbers(span: Span) -> list[str]:
    if span.kind == "quantity":
        return span.value.partition(" ")[0].split("-")
    return [span.text] if span.kind == "number" else []


def _date_text(span: Span) -> str:
    is_plain = span.value.startswith("-") or span.value in (
        span.text,
        span.text.lower(),
    )  # no year, or ISO
    return span.text if is_plain else f"{span.text} ({span.value})"


def _relevant(text: str, target: str) -> list[str]:
    """Return the sentences with most of the words of a target, in their order."""
    target_stems = stems(target).keys()
    scored = [(len(target_stems & stems(sentence).keys()), i, sentence) for i, sentence in enumerate(sentences(text))]
    best = sorted((entry for entry in scored if entry[0]), key=lambda entry: (-entry[0], entry[1]))[: MAX_ITEMS // 3]
    return [excerpt(sentence) for _, _, sentence in sorted(best, key=lambda entry: entry[1])]


_KINDS_OF_WORD: Mapping[str, tuple[Kind, ...]] = {
    **dict.fromkeys(
        stems("time timeframe period duration deadline date day days weeks months years long soon"),
        ("date", "time", "quantity"),
    ),
    **dict.fromkeys(stems("price cost fee amount sum charge money"), ("money",)),
    **dict.fromkeys(stems("contact email mail phone address link website"), ("email", "phone", "url")),
}
"""By the stem of a word of a target, the kinds of things that it means."""


def _of_kinds(text: str, target: str, spans: list[Span]) -> list[str]:
    """Return the sentences that hold a thing of a kind that a target means, in their order."""
    kinds = {kind for word in stems(target) for kind in _KINDS_OF_WORD.get(word, ())}
    things = {span.text for span in spans if span.kind in kinds}
    matching = (sentence for sentence in sentences(text) if any(thing in sentence for thing in things))
    return [excerpt(sentence) for sentence in matching][: MAX_ITEMS // 3]


def _finding(key: str, values: list[str]) -> str:
    more = f" and {len(values) - 5} more" if len(values) > 5 else ""
    return f"{key.replace('_', ' ').capitalize()}: {'; '.join(values[:5])}{more}"


def _output_of(text: str, answer: ExtractionResult) -> Output:
    source = Source(text)
    entities = [{**item.model_dump(), "verified": source.holds(item.text)} for item in answer.entities[:MAX_ITEMS]]
    values = [{**item.model_dump(), "verified": source.holds(item.value)} for item in answer.values[:MAX_ITEMS]]
    findings = [_finding_about(item.type, item.text, source) for item in answer.entities[:MAX_ITEMS]]
    findings += [_finding_about(item.name, item.value, source) for item in answer.values[:MAX_ITEMS]]
    return {
        "extracted_entities": entities,
        "context_for_each": [item["context"] for item in entities],
        "relationships": [item.model_dump() for item in answer.relationships[:MAX_ITEMS]],
        "values": values,
        "confidence": answer.confidence,
        "findings": findings or ["Extraction: nothing found"],
    }


def _finding_about(name: str, text: str, source: Source) -> str:
    doubt = "" if source.holds(text) else " (not verified: it does not stand in the answer)"
    return excerpt(f"{name}: {text}") + doubt
