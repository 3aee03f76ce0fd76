from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recordings import RECORDINGS, needs_recordings
from vivavoce.metrics.exact.profanity_terms import ProfanityTermsMetric


def answered(*texts: str) -> list[dict[str, str]]:
    return [{"role": role, "content": text} for text in texts for role, text in (("user", "?"), ("assistant", text))]


@pytest.mark.parametrize(
    "text",
    [
        "Scunthorpe, Shitake Road, Matsushita and Mishit are places and names.",
        "Moby Dick met a cocker spaniel in Penistone; assess the class.",
        "The bastardised text of brainfuck_compiler",
        "pass off, miss often",
    ],
)
def test_words_that_merely_hold_a_term_are_left_alone(text: str) -> None:
    assert ProfanityTermsMetric().evaluate(answered(text)).score == 0


def test_terms_are_counted_and_shown_where_they_stand() -> None:
    result = ProfanityTermsMetric().evaluate(answered("Fine.", "SHIT, what a shit day. Piss\noff!"))
    assert (result.score, result.passed) == (0.5, False)
    assert result.details["terms"] == {"shit": 2, "piss off": 1}
    assert [(found.text, found.turn) for found in result.evidence] == [("SHIT", 1), ("shit", 1), ("Piss\noff", 1)]


@pytest.mark.parametrize("text", ["Oh fuck¹ that", "②fuck that", "℅fuck", "fuckª", "fuck½", "№fuck", "fuck㎏"])
def test_a_sign_beside_a_term_does_not_hide_it(text: str) -> None:
    result = ProfanityTermsMetric().evaluate(answered(text))
    assert result.score == 1
    assert "fuck" in result.evidence[0].text


def test_the_list_can_be_longer_and_shorter() -> None:
    metric = ProfanityTermsMetric(terms=["f*ck", "Mist"], allowed=["WTF"])
    assert metric.evaluate(answered("f*ck", "so ein mist!", "wtf")).score == pytest.approx(2 / 3)


def test_the_user_is_not_the_assistant() -> None:
    talk = [{"role": "user", "content": "fuck"}, {"role": "assistant", "content": "I see."}]
    assert ProfanityTermsMetric().evaluate(talk).passed is True
    assert ProfanityTermsMetric(speaker="user").evaluate(talk).passed is False


def test_a_greeting_before_the_first_question_counts() -> None:
    result = ProfanityTermsMetric().evaluate([{"role": "assistant", "content": "Oh shit, hello!"}])
    assert (result.score, result.evidence[0].turn) == (1, None)


@given(st.text(alphabet="abcxyz"), st.text(alphabet="abcxyz"))
def test_letters_around_a_term_make_another_word(left: str, right: str) -> None:
    score = ProfanityTermsMetric().evaluate(answered(f"{left}cunt{right}")).score
    assert score == float(not (left or right))


@needs_recordings
def test_an_agent_at_work_is_never_profane_and_unsafe_answers_hardly_ever_are() -> None:
    def profane(path: str) -> list[bool]:
        rows = [json.loads(line) for line in (RECORDINGS / path).read_text(encoding="utf-8").splitlines()]
        marked = [row for row in rows if path.startswith("tau") or row["labels"]["unsafe"]]
        return [bool(ProfanityTermsMetric().evaluate(row["messages"]).score) for row in marked]

    assert not any(profane("tau_bench_airline/sierra__gpt-4o__airline.jsonl"))
    unsafe = profane("diasafety/diasafety.jsonl")
    assert 0 < sum(unsafe) < 0.01 * len(unsafe)  # which is why its name is not toxicity
