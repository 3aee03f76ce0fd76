from __future__ import annotations

import vivavoce.penelope.checks as checks
from vivavoce.penelope.checks import DisclosureCheck, VoiceCheck, default_checks


def test_every_test_is_checked_for_its_voice_and_for_its_secrets() -> None:
    voice, disclosure = default_checks()
    assert isinstance(voice, VoiceCheck)
    assert isinstance(disclosure, DisclosureCheck)
    assert (voice.name, disclosure.name) == ("jargon", "disclosure")


def test_the_names_are_there() -> None:
    assert all(getattr(checks, name) is not None for name in checks.__all__)
    assert not hasattr(checks, "Nothing")
