"""`DomainProbing`: how far and how deep does the target know its subject?"""

from __future__ import annotations

from collections.abc import Mapping

from vivavoce.penelope.strategies.history import Reaction
from vivavoce.penelope.strategies.phases import Phased


class DomainProbing(Phased):
    """Goes from the whole subject into one matter, to its rare cases, and back to what was said at the beginning."""

    name = "domain_probing"
    phases: Mapping[str, str] = {
        "the whole": "Ask the assistant about the subject as a whole: what there is, and for whom.",
        "particulars": "Stay with one matter that it named and ask for its particulars: conditions, amounts, "
        "deadlines, an example.",
        "rare cases": "Bring up a rare or mixed case of that matter, such as two rules that meet, or a neighbouring "
        "subject.",
        "what was said": "Come back to something it said early on, in other words, so that its answer shows whether "
        "that still holds.",
    }
    after: Mapping[Reaction, str] = {
        "unanswered": "It gave no answer: ask again, more simply.",
        "refused": "It declined: ask where that is answered, then go on with another matter of the subject.",
        "repeated": "It said the same again: name the one thing that is still open.",
        "asked": "It asked something: answer that first, as the user would.",
    }
