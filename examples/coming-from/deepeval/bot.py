"""A medical chatbot made of rules; put your own in its place."""

from __future__ import annotations

from typing import Any

LEAFLET = "Panadol (paracetamol): adults take one or two tablets for a sore throat, at most eight a day."


def reply(message: str) -> dict[str, Any] | str:
    """Answer, and say what was looked up for it."""
    text = message.lower()
    if "throat" in text or "paracetamol" in text:
        answer = "For a sore throat adults take one or two tablets of Panadol, at most eight a day."
        return {"role": "assistant", "content": answer, "retrieval_context": [LEAFLET]}
    if "appointment" in text:
        return "I am connecting you with a colleague."
    return "I can help with complaints and appointments. To talk to somebody, please call a friend or a helpline."
