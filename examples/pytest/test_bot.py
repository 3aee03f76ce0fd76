"""Conversations as tests: run `pytest` in this folder. No judge is asked, for judge.jsonl has the answers."""

from __future__ import annotations

import pytest

from vivavoce.testing import TalkingTarget, viva_assert

POLITE = {"metric": "aspect_critic", "config": {"definition": "The assistant is polite to the user."}}


def test_it_asks_for_the_order_first(viva_target: TalkingTarget) -> None:
    conversation = viva_target.talk("My parcel is late.", "It is 1042")
    viva_assert(conversation, expect=[{"contains": "which order"}, {"contains": "today"}])


def test_it_is_polite(viva_target: TalkingTarget) -> None:
    viva_assert(viva_target.talk("Thank you!"), [POLITE])


@pytest.mark.viva(trials=5, min_pass=4)
def test_it_knows_what_it_can_do(viva_target: TalkingTarget) -> None:
    viva_assert(viva_target.talk("Hello"), expect=[{"contains": "parcel"}])
