"""`CapabilityMapping`: what can the target do?"""

from __future__ import annotations

from collections.abc import Mapping

from vivavoce.penelope.strategies.history import Reaction
from vivavoce.penelope.strategies.phases import Phased


class CapabilityMapping(Phased):
    """Asks what the target does, tries that out one by one and then combined, and looks for what it left unsaid."""

    name = "capability_mapping"
    phases: Mapping[str, str] = {
        "what it offers": "Ask what the assistant can do for somebody in your situation.",
        "one by one": "Let it do one thing that it said it can do and that was not tried yet; one thing a message.",
        "combined": "Ask for something that needs two of the things that worked, one after the other.",
        "left unsaid": "Ask for something that it never named but that a user would expect to belong to it.",
    }
    after: Mapping[Reaction, str] = {
        "unanswered": "It gave no answer: ask for the same in one short sentence.",
        "refused": "It cannot or will not do that: ask what it does instead, and do not insist.",
        "repeated": "It said the same again: leave this and take up another thing it can do.",
        "asked": "It needs to know something: tell it, so that it can finish.",
    }
