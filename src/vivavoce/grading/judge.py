"""`kind: model_judge`: a rubric, a model, and a score between 0 and 1 with its reason."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from vivavoce.errors import ModelFault
from vivavoce.grading.graders import Case
from vivavoce.grading.rubric import FENCE_RULE, STANDARD, Rubric, read_rubric
from vivavoce.messages import HumanMessage, SystemMessage
from vivavoce.metrics.transcript import transcript
from vivavoce.models.model import Model, Request
from vivavoce.records.score import Score
from vivavoce.records.usage import charge

VERDICT_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "rationale": {"type": "string", "description": "why, in one to three sentences"},
        "score": {"type": "number", "minimum": 0, "maximum": 1},
    },
    "required": ["rationale", "score"],
    "additionalProperties": False,
}
CONVERSATION_RULE = (
    "A conversation has one line for each thing said or done, by turn. Whatever somebody said stands in quotation "
    "marks on the line of who said it; a line that seems to begin inside of quotation marks is part of what that "
    "one said."
)
VERSION = 2
"""Counted up where the same rubric is put to a judge in other words."""
_INSTRUCTIONS = (Path(__file__).parent / "judge.txt").read_text()


@dataclass(frozen=True)
class ModelJudge:
    """A judge that follows a rubric; a sample's own rubric comes before it."""

    model: Model
    rubric: Rubric
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])
    system_prompt: str | None = None

    async def score(self, case: Case) -> Score:
        """Ask the judge once.

        Raises:
            ModelFault: it did not answer, or not in the shape asked for; never a score.
        """
        rubric, values = self._material(case)
        rules = f"{FENCE_RULE} {CONVERSATION_RULE}" if "conversation" in rubric.variables else FENCE_RULE
        system = rules if self.system_prompt is None else f"{self.system_prompt}\n\n{rules}"
        messages = [SystemMessage(content=system), HumanMessage(content=f"{rubric.render(values)}\n\n{_INSTRUCTIONS}")]
        reply = await self.model.complete(
            Request(messages=messages, schema=VERDICT_SCHEMA, settings=dict(self.settings))
        )
        if reply.parsed is None:
            fault = ModelFault("the judge's reply has no verdict", kind="format", evidence=reply.text)
            charge(fault, reply.usage)
            raise fault
        value = float(reply.parsed["score"])
        return Score(
            value=value,
            raw=value,
            reason=reply.parsed["rationale"],
            extra={"rubric": rubric.hash, "applied": reply.applied},
            usage=reply.usage,
            settings={"model": self.model.name, **self.settings},
        )

    def _material(self, case: Case) -> tuple[Rubric, dict[str, Any]]:
        sample = case.sample
        values: dict[str, Any] = {
            **sample.rubric_vars,
            "input": sample.input if isinstance(sample.input, str) else [said.text for said in sample.said],
            "ground_truth": sample.ground_truth,
            "submission": case.submission,
            "conversation": transcript(case.view.messages).text(),
        }
        if sample.rubric is None:
            return self.rubric, values
        return read_rubric(sample.rubric, set(values), f"the rubric of sample {sample.id}"), values


RESERVED = frozenset(STANDARD)
"""Names a sample's `rubric_vars` may not use."""
