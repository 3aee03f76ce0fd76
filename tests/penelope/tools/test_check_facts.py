from __future__ import annotations

import pytest

from vivavoce.penelope.tools.check_facts import CheckFactsTool
from vivavoce.testing import ScriptedModel

from ..states import state

REPLY = "Sure! Returns are accepted within 14 days. The price is $49.00, e.g. for lamps. We do not ship to Norway."


@pytest.mark.parametrize(
    ("fact", "verdict", "evidence"),
    [
        ("Returns are accepted within 14 days", "supported", "Returns are accepted within 14 days."),
        ("Returns are accepted within 30 days", "contradicted", "Returns are accepted within 14 days."),
        ("price: 49", "supported", "The price is $49.00, e.g. for lamps."),
        ("We ship to Norway", "unclear", "We do not ship to Norway."),
        ("We do not ship to Norway", "supported", "We do not ship to Norway."),
        ("The warranty lasts 2 years", "not mentioned", None),
        ("Gift cards never expire", "not mentioned", None),
    ],
)
def test_a_fact_is_judged_by_words_and_figures(fact: str, verdict: str, evidence: str | None) -> None:
    output = CheckFactsTool().execute(REPLY, [fact]).output
    assert output["facts"] == [{"fact": fact, "verdict": verdict, "evidence": evidence}]
    assert output["findings"][0].startswith(f"Fact {verdict}: {fact}")
    assert "paraphrase" in output["note"]


def test_other_figures_beside_few_of_the_words_are_only_doubtful() -> None:
    output = CheckFactsTool().execute("Money arrives 5 days after the return.", ["Returns accepted 30 days"]).output
    assert output["facts"][0]["verdict"] == "unclear"


def test_facts_are_those_of_the_call_else_the_tool_else_the_test() -> None:
    talk = state(("Hi", REPLY), facts={"order": "4471"}, context={"facts": ["Lamps cost $49"]})
    of_test = CheckFactsTool().begin(talk).execute().output["facts"]
    assert [fact["fact"] for fact in of_test] == ["order: 4471", "Lamps cost $49"]
    own = CheckFactsTool({"price": "49"}).begin(talk)
    assert [fact["fact"] for fact in own.execute().output["facts"]] == ["price: 49"]
    assert [fact["fact"] for fact in own.execute(facts=["a b"]).output["facts"]] == ["a b"]


def test_facts_that_are_none_are_told() -> None:
    assert CheckFactsTool().execute("Hi").error == "no facts to compare with; give facts as a list of sentences"
    assert CheckFactsTool().execute("Hi", 5).error == "facts is a list of texts, got a int"  # pyright: ignore[reportArgumentType]


def test_what_a_model_quotes_is_verified() -> None:
    answer = {
        "verdicts": [
            {"fact": 0, "verdict": "contradicted", "quote": "within 14 days"},
            {"fact": 1, "verdict": "supported", "quote": "free shipping for all"},
            {"fact": 9, "verdict": "supported", "quote": "Sure!"},
        ]
    }
    facts = ["Returns within a month", "Free shipping", "Gift cards"]
    output = CheckFactsTool(model=ScriptedModel([answer])).execute(REPLY, facts).output
    assert [(fact["verdict"], fact["verified"]) for fact in output["facts"]] == [
        ("contradicted", True),
        ("supported", False),
        ("not judged", True),
    ]
    assert output["findings"][1].endswith("(not verified: the quote does not stand in the answer)")
    assert output["method"] == "model"
