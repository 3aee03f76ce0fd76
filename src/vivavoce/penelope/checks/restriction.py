"""`RestrictionCheck`: does the tester tell a fact that its brief forbids it to tell?"""

from __future__ import annotations

from vivavoce.penelope.brief_problems import withheld_facts
from vivavoce.penelope.context import TestState
from vivavoce.penelope.facts import may_tell_fact


class RestrictionCheck:
    """Objects to a message with the value of a fact that a restriction forbids, such as "Never say the order number".

    Such a message is never sent, even if the target asks for the fact: the restriction comes first. A restriction with
    an exception, such as "not before you are asked", forbids nothing here.

    The state notes which facts were not told for that reason.

    Known failure: a fact stated in other words is not found, see `DisclosureCheck`.
    """

    name = "restriction"
    patience: int | None = None

    def objection(self, message: str, state: TestState) -> str | None:
        """Name the facts that the tester tells against a restriction."""
        context = state.context
        for fact, restriction in withheld_facts(context.restrictions, context.facts).items():
            value = context.facts[fact]
            if may_tell_fact(message, fact, value):
                state.withheld[fact] = restriction
                return f"your rule is {restriction!r}: leave {value!r} out of the message, even if the assistant asks"
        return None
