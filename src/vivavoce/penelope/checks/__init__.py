"""Checks of what the tester is about to say, one a file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vivavoce.lazy_names import lazy_names
from vivavoce.plugins import lazy

if TYPE_CHECKING:
    from vivavoce.models.custom import ModelLike
    from vivavoce.penelope.checks.check import MessageCheck as MessageCheck
    from vivavoce.penelope.checks.disclosure import DisclosureCheck as DisclosureCheck
    from vivavoce.penelope.checks.restriction import RestrictionCheck as RestrictionCheck
    from vivavoce.penelope.checks.voice import VoiceCheck as VoiceCheck


__getattr__, __dir__ = lazy_names(
    __name__,
    {
        ".check": ("MessageCheck",),
        ".disclosure": ("DisclosureCheck",),
        ".restriction": ("RestrictionCheck",),
        ".voice": ("VoiceCheck",),
    },
    here=("default_checks",),
)


def default_checks(judge: ModelLike | None = None) -> tuple[MessageCheck, ...]:
    """Return the checks of a test in the order in which they run; `judge` is asked where words leave it open."""
    voice = lazy("vivavoce.penelope.checks.voice:VoiceCheck")
    disclosure = lazy("vivavoce.penelope.checks.disclosure:DisclosureCheck")
    restriction = lazy("vivavoce.penelope.checks.restriction:RestrictionCheck")
    return (voice(), restriction(), disclosure(judge))
