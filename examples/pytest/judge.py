"""The judge that the cassette was recorded with; in place of it, name a model in pyproject.toml and record again."""

from __future__ import annotations

from vivavoce.models.model import Request
from vivavoce.testing import ScriptedModel


def answer(request: Request) -> dict[str, object]:
    """Answer as a model would that finds every conversation polite."""
    del request
    return {
        "reasoning": "The words are friendly.",
        "evidence": ["You are welcome!"],
        "confidence": 0.9,
        "verdict": True,
    }


model = ScriptedModel(answer, "scripted judge")
model.anonymous = False  # like a model of a provider, whose answers may be kept
