from __future__ import annotations

from typing import Any

import pytest

from vivavoce.penelope.tools.analyze import AnalyzeTool
from vivavoce.testing import ScriptedModel

from ..states import state, turn


def findings(text: str, focus: str = "", context: str = "") -> dict[str, str]:
    names: list[str] = AnalyzeTool().execute(text, focus, context).output["findings"]
    return dict(name.split(": ", 1) for name in names)


def test_a_hyphen_is_no_bullet_and_know_holds_no_no() -> None:
    results = findings("I know the well-known answer")
    assert results["Response length"] == "5 words, 1 sentence"
    assert results["Tone"].startswith("neutral")
    assert results["Structure"] == "plain sentences"


@pytest.mark.parametrize(
    ("text", "tone"),
    [
        ("Certainly, I can help!", "generally positive/helpful (words: certainly, i can, help"),
        ("Unfortunately, we cannot do that.", "generally negative (words: unfortunately, cannot"),
        ("I am sorry, but I can help.", "mixed"),
        ("You won’t get it.", "generally negative (words: won't"),
        ("No problem.", "generally positive/helpful (English lexicon"),
        ("Cannonballs and cants.", "neutral"),
    ],
)
def test_the_tone_is_of_whole_words(text: str, tone: str) -> None:
    assert findings(text)["Tone"].startswith(tone)


def test_the_structure_is_of_lines() -> None:
    text = "# Steps\n\n1. Open\n2. Close\n\n- a\n• b\n* c\n\n| a | b |\n|---|---|\n\nSee https://a.org or `x`, 5 items."
    assert findings(text)["Structure"] == (
        "contains 1 heading, 2 numbered points, 3 bullet points, a table, links, code, numerical information"
    )


def test_a_focus_on_rules_looks_for_the_language_of_rules() -> None:
    text = "We offer 30-day returns for unopened items in original packaging."
    results = findings(text, "Check if the policy timeframe and conditions are clearly stated")
    assert results["Policy check"] == "contains policy language (30-day, returns)"
    assert results["Focus"] == "does not mention timeframe, conditions"
    assert findings("Nice weather.", "refund rules")["Policy check"] == "no policy language"
    assert "Policy check" not in findings(text, "tone")


def test_a_refusal_a_question_back_and_hedging_are_quoted() -> None:
    results = findings("I cannot help with that. Perhaps tomorrow? I'm not sure.")
    assert results["Refusal"] == '"I cannot help"'
    assert results["Question asked back"] == '"Perhaps tomorrow?"'
    assert results["Hedging"] == "perhaps, i'm not sure"
    assert findings("Done.", "does it ask a question or refuse?")["Refusal"] == "none"


def test_the_context_is_what_was_given_or_what_was_said_before() -> None:
    assert findings("The lamp is on its way.", "", "I ordered a lamp")["Context check"] == (
        "takes up lamp of what was said before"
    )
    talk = state(("I ordered a lamp", "Which one?"), ("The red one", "The lamp ships today."))
    result = AnalyzeTool().begin(talk).execute(analysis_focus="does it keep the context?").output["findings"]
    assert "Context check: takes up lamp of what was said before" in result
    assert not [finding for finding in result if finding.startswith("Focus")]


def test_what_the_target_cannot_remember_is_no_context() -> None:
    talk = state(("I ordered a lamp", "Fine"), turn("Hello", "Yes?", fresh=True), ("Well", "The lamp ships today."))
    result = AnalyzeTool().begin(talk).execute(analysis_focus="context").output["findings"]
    assert "Context check: takes up no word of what was said before" in result


def test_a_model_answers_under_the_names_of_the_seed() -> None:
    answer = {
        "findings": ["It names 30 days."],
        "sentiment": "positive",
        "completeness_score": 0.5,
        "concerns": ["No conditions."],
        "next_steps": ["Ask for them."],
    }
    model = ScriptedModel([answer])
    output = AnalyzeTool(model).execute("We offer 30-day returns.", "conditions").output
    assert output == {
        "findings": ["It names 30 days."],
        "sentiment": "positive",
        "completeness": 0.5,
        "concerns": ["No conditions."],
        "recommendations": ["Ask for them."],
        "method": "model",
    }
    assert '"conditions"' in model.requests[0].messages[0].text


def test_a_completeness_above_one_is_not_believed() -> None:
    answer: dict[str, Any] = {"findings": [], "sentiment": "mixed", "concerns": [], "next_steps": []}
    answer["completeness_score"] = 57.0
    output = AnalyzeTool(ScriptedModel([answer])).execute("Hi", "x").output
    assert output["method"] == "rules"
    assert "completeness_score" in output["fallback"]
