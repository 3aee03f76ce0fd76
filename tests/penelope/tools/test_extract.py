from __future__ import annotations

import pytest

from vivavoce.errors import UsageError
from vivavoce.penelope.tools.extract import ExtractTool
from vivavoce.testing import ScriptedModel

from ..states import state

TEXT = (
    "We offer 30-day returns for unopened items, e.g. lamps. Call 555-123-4567 or +1 212 555 0188 before "
    "March 3rd, 2024 at 14:30. Shipping costs $4.99. Write to help@example.com or see https://example.com/r/7. "
    "Your order 778812 has 3 items."
)


def test_everything_is_listed_once_and_under_its_kind() -> None:
    output = ExtractTool().execute(TEXT, "refund timeframe").output
    assert output["dates"] == ["March 3rd, 2024 (2024-03-03)"]
    assert output["times"] == ["14:30"]
    assert output["quantities"] == ["30-day", "3 items"]
    assert output["money"] == ["$4.99"]
    assert output["numbers"] == ["30", "778812", "3"]
    assert output["emails"] == ["help@example.com"]
    assert output["phones"] == ["555-123-4567", "+1 212 555 0188"]
    assert output["urls"] == ["https://example.com/r/7"]
    assert output["method"] == "rules"
    assert "Money: $4.99" in output["findings"]


def test_relevant_sentences_have_words_of_the_target_and_the_is_none() -> None:
    relevant = ExtractTool().execute(TEXT, "the cost of returning it, for the user").output["relevant_content"]
    assert relevant == ["We offer 30-day returns for unopened items, e.g. lamps.", "Shipping costs $4.99."]
    assert ExtractTool().execute(TEXT, "the").output["relevant_content"] == []


def test_a_target_is_never_an_expression() -> None:
    assert ExtractTool().execute("It (a+)+ costs.", "(a+)+$ [").output["relevant_content"] == []


def test_a_long_list_is_cut_and_counted() -> None:
    output = ExtractTool().execute(" and ".join(map(str, range(100, 200))), "numbers").output
    assert len(output["numbers"]) == 30
    assert output["findings"] == ["Numbers: 100; 101; 102; 103; 104 and 95 more"]


def test_the_latest_reply_is_read_where_none_is_given() -> None:
    talk = state(("Hi", "Within 5 days."), ("Sure?", "Within 7 days."))
    assert ExtractTool().begin(talk).execute(extraction_target="days").output["quantities"] == ["7 days"]
    assert ExtractTool().execute("", "days").output["findings"] == ["Extraction: nothing found"]


def test_a_region_that_is_none_is_refused() -> None:
    with pytest.raises(UsageError, match="extract_information: unknown region 'Mars'"):
        ExtractTool(region="Mars")
    assert ExtractTool(region="DE").execute("Tel 030 901820", "phone").output["phones"] == ["030 901820"]


def test_what_a_model_extracts_is_verified() -> None:
    answer = {
        "entities": [
            {"text": "30-day returns", "type": "policy", "context": "We offer 30-day returns", "confidence": 0.9},
            {"text": "60-day returns", "type": "policy", "context": "", "confidence": 0.9},
        ],
        "relationships": [{"subject": "returns", "relation": "need", "object": "unopened items"}],
        "values": [{"name": "window", "value": "30-day"}],
        "confidence": 0.8,
    }
    output = ExtractTool(ScriptedModel([answer])).execute(TEXT, "return window").output
    assert [entity["verified"] for entity in output["extracted_entities"]] == [True, False]
    assert output["context_for_each"] == ["We offer 30-day returns", ""]
    assert output["relationships"] == answer["relationships"]
    assert output["confidence"] == 0.8
    assert output["values"] == [{"name": "window", "value": "30-day", "verified": True}]
    assert output["findings"] == [
        "policy: 30-day returns",
        "policy: 60-day returns (not verified: it does not stand in the answer)",
        "window: 30-day",
    ]


def relevant(text: str, target: str) -> list[str]:
    texts: list[str] = ExtractTool().execute(text, target).output["relevant_content"]
    return texts


def test_where_no_word_of_the_target_occurs_what_it_means_decides() -> None:
    text = "We offer 30-day returns. Shipping is free. It costs $12."
    assert relevant(text, "refund timeframe and conditions") == ["We offer 30-day returns."]
    assert relevant(text, "the price") == ["It costs $12."]
    assert relevant(text, "warranty") == []
    assert relevant(text, "when is shipping") == ["Shipping is free."]
