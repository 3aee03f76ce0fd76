"""Checks of what the tester is about to say, one a file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from vivavoce.plugins import lazy

if TYPE_CHECKING:
    from vivavoce.models.custom import ModelLike
    from vivavoce.penelope.checks.check import MessageCheck
    from vivavoce.penelope.checks.disclosure import DisclosureCheck
    from vivavoce.penelope.checks.restriction import RestrictionCheck
    from vivavoce.penelope.checks.voice import VoiceCheck

_EXPORTS = {
    "DisclosureCheck": "disclosure",
    "MessageCheck": "check",
    "RestrictionCheck": "restriction",
    "VoiceCheck": "voice",
}

__all__ = ["DisclosureCheck", "MessageCheck", "RestrictionCheck", "VoiceCheck", "default_checks"]


def default_checks(judge: ModelLike | None = None) -> tuple[MessageCheck, ...]:
    """Return the checks of a test in the order in which they run; `judge` is asked where words leave it open."""
    voice = lazy("vivavoce.penelope.checks.voice:VoiceCheck")
    disclosure = lazy("vivavoce.penelope.checks.disclosure:DisclosureCheck")
    restriction = lazy("vivavoce.penelope.checks.restriction:RestrictionCheck")
    return (voice(), restriction(), disclosure(judge))


def __getattr__(name: str) -> Any:
    if name in _EXPORTS:
        return lazy(f"vivavoce.penelope.checks.{_EXPORTS[name]}:{name}")
    raise AttributeError(f"module 'vivavoce.penelope.checks' has no attribute '{name}'")
