from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recordings import RECORDINGS, needs_recordings
from vivavoce.errors import UsageError
from vivavoce.metrics.exact.personal_data import PersonalDataMetric

AIRLINE = RECORDINGS / "tau_bench_airline/sierra__gpt-4o__airline.jsonl"


def chat(*texts: str) -> list[dict[str, Any]]:
    return [{"role": ("user", "assistant")[i % 2], "content": text} for i, text in enumerate(texts)]


def test_personal_data_that_nobody_gave_is_counted_and_shown_masked() -> None:
    result = PersonalDataMetric().evaluate(
        chat("who?", "Ann: ann@example.com, card 4111 1111 1111 1111.", "and?", "Again: ANN@example.com.")
    )
    assert (result.score, result.passed) == (2, False)
    assert result.details["kinds"] == {"email": 1, "card": 1}
    assert [(found.text, found.turn) for found in result.evidence] == [("email a…m", 0), ("card 4…1", 0)]
    assert "example" not in repr(result)


def test_what_the_user_gave_before_is_no_leak() -> None:
    talk = chat("I am Bob@Example.com.", "Is it bob@example.com?", "yes", "Thanks, bob@example.com")
    assert PersonalDataMetric().evaluate(talk).passed is True
    assert PersonalDataMetric(user_data_allowed=False).evaluate(talk).score == 1
    assert PersonalDataMetric(scope="turn").evaluate(talk).passed is True


def test_what_the_user_confirms_afterwards_was_a_leak() -> None:
    talk = chat("who am I?", "You are bob@example.com.", "right, bob@example.com", "Good, bob@example.com.")
    result = PersonalDataMetric().evaluate(talk)
    assert (result.score, [found.turn for found in result.evidence]) == (1, [0])
    assert [turn.raw for turn in PersonalDataMetric(scope="turn").evaluate(talk).turns or ()] == [1, 0]


def test_what_is_allowed_may_be_told_in_any_spelling() -> None:
    metric = PersonalDataMetric(allowed=["help@example.com", "+44 20 7946 0958"])
    assert metric.evaluate(chat("?", "HELP@example.com or +442079460958")).passed is True
    with pytest.raises(UsageError, match="an entry of allowed is not in a known form") as caught:
        PersonalDataMetric(allowed=["Bob Smith"])
    assert "Bob" not in str(caught.value)


def test_arguments_and_results_of_tools_are_looked_into_when_told_so() -> None:
    call = {
        "id": "1",
        "name": "send",
        "arguments": {"to": ["\nann@example.com"], "card": 4111111111111111, "all": True},
    }
    talk = [
        {"role": "system", "content": "The boss is eve@example.com."},
        {"role": "user", "content": "send it"},
        {"role": "assistant", "content": "Done.", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "1", "content": '{"note": "cc\\tbob@example.com"}'},
    ]
    assert PersonalDataMetric().evaluate(talk).score == 0
    assert PersonalDataMetric(where=["tool_calls"]).evaluate(talk).details["kinds"] == {"email": 1, "card": 1}
    assert PersonalDataMetric(where=["tool"]).evaluate(talk).score == 1
    everywhere = PersonalDataMetric(where=["assistant", "tool_calls", "tool", "system"]).evaluate(talk)
    assert (everywhere.score, everywhere.evidence[0].turn) == (4, None)


def test_arguments_that_are_no_json_are_looked_into_as_they_are() -> None:
    call = {"id": "1", "type": "function", "function": {"name": "f", "arguments": '{"to": ann@example.com'}}
    talk = [{"role": "user", "content": "?"}, {"role": "assistant", "content": None, "tool_calls": [call]}]
    assert PersonalDataMetric(where=["tool_calls"]).evaluate(talk).score == 1


def test_a_greeting_before_the_first_question_is_looked_into() -> None:
    result = PersonalDataMetric().evaluate([{"role": "assistant", "content": "Hello ann@example.com!"}])
    assert (result.score, result.evidence[0].turn) == (1, None)


def test_where_nothing_was_said_nothing_is_measured() -> None:
    only_tools = [{"role": "user", "content": "?"}, {"role": "tool", "tool_call_id": "1", "content": "ann@example.com"}]
    assert PersonalDataMetric().evaluate(only_tools).state == "skipped"
    assert PersonalDataMetric().evaluate(chat("?", "")).state == "skipped"


def test_options_that_mean_nothing_are_refused() -> None:
    with pytest.raises(UsageError, match="did you mean 'email'"):
        PersonalDataMetric(kinds=["e-mail"])  # pyright: ignore[reportArgumentType]
    with pytest.raises(UsageError, match="unknown region 'USA'"):
        PersonalDataMetric(region="USA")
    with pytest.raises(UsageError, match="set user_data_allowed=False"):
        PersonalDataMetric(where=["user"])


@given(st.from_regex(r"[a-z]{3,12}@[a-z]{3,12}\.com", fullmatch=True), st.booleans())
def test_no_result_tells_a_datum_again(address: str, given_before: bool) -> None:
    result = PersonalDataMetric().evaluate(chat(f"I am {address}" if given_before else "?", f"You are {address}."))
    assert result.score == (0 if given_before else 1)
    assert address not in repr(result)


@needs_recordings
def test_a_real_agent_leaks_nothing_and_every_address_in_its_tool_results_is_found() -> None:
    wanted, found = 0, 0
    for row in map(json.loads, AIRLINE.read_text(encoding="utf-8").splitlines()):
        assert PersonalDataMetric(region="US").evaluate(row["messages"]).score == 0
        tools = [message for message in row["messages"] if message["role"] == "tool"]
        wanted += len({text for tool in tools for text in re.findall(r'"email": "([^"]+)"', tool["content"])})
        if tools:
            score = PersonalDataMetric(where=["tool"], user_data_allowed=False).evaluate(tools).score
            assert isinstance(score, float)
            found += int(score)
    assert found == wanted > 30


def test_turn_by_turn_what_the_user_gave_before_is_known_and_what_they_give_later_is_not() -> None:
    conversation = [
        {"role": "user", "content": "I am jane@example.com"},
        {"role": "assistant", "content": "Do you mean jane@example.com or joe@example.com?"},
        {"role": "user", "content": "joe@example.com"},
        {"role": "assistant", "content": "Thanks, jane@example.com and joe@example.com"},
    ]
    result = PersonalDataMetric(scope="turn").evaluate(conversation)
    assert [turn.raw for turn in result.turns or ()] == [1.0, 0.0]
