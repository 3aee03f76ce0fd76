from __future__ import annotations

import vivavoce.penelope.checks as checks
from vivavoce.penelope.checks import DisclosureCheck, RestrictionCheck, VoiceCheck, default_checks


def test_every_test_is_checked_for_its_voice_its_rules_and_its_secrets() -> None:
    voice, restriction, disclosure = default_checks()
    assert isinstance(voice, VoiceCheck)
    assert isinstance(disclosure, DisclosureCheck)
    assert isinstance(restriction, RestrictionCheck)
    assert (voice.name, restriction.name, disclosure.name) == ("jargon", "restriction", "disclosure")


def test_the_names_are_there() -> None:
    assert all(getattr(checks, name) is not None for name in checks.__all__)
    assert not hasattr(checks, "Nothing")
