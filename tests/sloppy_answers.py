"""Answers as small models write them: data for `models/test_sloppy.py`.

A frame stands around a clean answer, whose place is `@`; an edit is a text in a clean answer and what stands in its
place. Each has what the record says of it where it has one reading, and None where it is an error.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

FRAMES: Sequence[tuple[str, str | None]] = (
    ("\n\n@\n", ""),
    ("```json\n@\n```", "fenced"),
    ("```\n@\n```\n", "fenced"),
    ("```JSON\n@", "fenced"),
    ("@\n```", "fenced"),
    ("Sure! Here is the JSON:\n@", "prose"),
    ("Here's my evaluation of the conversation:\n\n```json\n@\n```\n\nLet me know if you need more!", "fenced, prose"),
    ("@\n\nExplanation: I looked at each turn and it's all there.", "prose"),
    ("**Answer**\n\n@", "prose"),
    ("Answer: @.", "prose"),
    ("JSON: @<|im_end|>", "prose"),
    ("[INST] @ [/INST]", "prose"),
    ("<tool_call>\n@\n</tool_call>", "prose"),
    ("<think>\nThe user asked for it. Was it done?\n</think>\n\n@", "thoughts"),
    ('<think>Maybe {"confidence": 0.1}? No.</think>@', "thoughts"),
    ("<think></think>\n```json\n@\n```", "thoughts, fenced"),
    ("Okay, so it was done in the end.\n</think>\n\n@", "thoughts"),
    ("@\n\n@", "repeated"),
    ("[@]", "prose"),
    ("\ufeff@", "prose"),
    ('{"name": "reply", "arguments": @}', "call"),
    ('```json\n{"name": "reply", "parameters": @}\n```', "fenced, call"),
    ('{"type": "function", "name": "reply", "parameters": @}', "call"),
    ("<think>It was done. @", None),
    ("@ or rather {}", None),
    ("@}", None),
    ("{@", None),
    ("{{@}}", None),
    ('{"reply": @}', None),
    ('{"name": "other", "arguments": @}', None),
    ("[@, {}]", None),
    ('@, "confidence": 0.1', None),
    ("I am sorry, but I cannot judge this conversation.", None),
    ("", None),
    ("null", None),
    ("```json\n```", None),
    ("{}", None),
    ("yes", None),
)

SPELLINGS: Sequence[tuple[str, str, str | None]] = (
    ("}", ",}", "spelling"),
    ('", ', '",\n  ', ""),
    ('"', "'", "spelling"),
    ('"reasoning"', "reasoning", "spelling"),
    ('"reasoning": "', '"reasoning": “', None),
    ('"reasoning"', "“reasoning”", "spelling"),
    ('"reasoning"', "'reasoning'", "spelling"),
    ('"reasoning"', '"Reasoning"', "keys"),
    ('"reasoning"', '"REASONING"', "keys"),
    ('"reasoning"', '"reason"', None),
    ('"reasoning"', '// in one sentence\n"reasoning"', "spelling"),
    ('"reasoning"', '/* in one sentence */ "reasoning"', "spelling"),
    ('"reasoning"', '"reasoning": "first", "reasoning"', None),
    ('"reasoning"', '"Reasoning": "first", "reasoning"', None),
    ('"reasoning": "', '"reasoning": "He said "no" and ', None),
    ('"reasoning": "', '"reasoning": ["', None),
    ('"reasoning":', '"reasoning"', None),
    ('"reasoning":', '"reasoning" =', None),
    ('"reasoning": ', '"reasoning": null, "x": ', None),
    ("}", "", None),
    ('"', "", None),
    (", ", " ", None),
    (", ", "; ", None),
)


@dataclass(frozen=True, slots=True)
class Family:
    """A clean answer of one kind of question, and edits that only such an answer has."""

    clean: str
    edits: Sequence[tuple[str, str, str | None]]

    def answers(self) -> list[tuple[str, str | None]]:
        """Return the sloppy answers, each with what the record says of it."""
        framed = [(frame.replace("@", self.clean), read) for frame, read in FRAMES]
        return framed + [(self.clean.replace(old, new), read) for old, new, read in (*SPELLINGS, *self.edits)]


GOAL = Family(
    '{"criteria": [{"outcome": "the order is cancelled", "kind": "change", "evidence": ["Order 1042 is cancelled."], '
    '"met": true}], "changes": [{"call": "c0", "asked": "cancel 1042", "rule": "", "verdict": "wanted"}, '
    '{"call": "c2", "asked": "", "rule": "", "verdict": "not_wanted"}], "breaches": [], '
    '"reasoning": "It was cancelled.", "achievement_level": "fully_achieved", "confidence": 0.9}',
    (
        ('"fully_achieved"', '"Fully Achieved"', "values"),
        ('"fully_achieved"', '"FULLY_ACHIEVED"', "values"),
        ('"fully_achieved"', '"fully-achieved"', "values"),
        ('"fully_achieved"', '"FullyAchieved"', "values"),
        ('"fully_achieved"', '"achieved"', None),
        ('"fully_achieved"', '"fully_achieved | partially_achieved"', None),
        ('"fully_achieved"', '"yes"', None),
        ('"fully_achieved"', "3", None),
        ('"achievement_level"', '"achievementLevel"', "keys"),
        ('"achievement_level"', '"Achievement Level"', "keys"),
        ('"achievement_level"', '"achievement\\_level"', "spelling"),
        ('"achievement_level"', '"level"', None),
        ('"change"', '"Change"', "values"),
        ('"change"', '"cancellation"', None),
        ("true", "True", "spelling"),
        ("true", '"true"', "types"),
        ("true", '"Yes"', "types"),
        ("true", '"partially"', None),
        ("true", "1", None),
        ("0.9", '"0.9"', "types"),
        ("0.9", ".9", "spelling"),
        ("0.9", '"90%"', None),
        ("0.9", "90", None),
        ("0.9", '"high"', None),
        ("0.9", "NaN", None),
        ("0.9", "Infinity", None),
        ('["Order 1042 is cancelled."]', '"Order 1042 is cancelled."', None),
        ('["Order 1042 is cancelled."]', '"[\\"Order 1042 is cancelled.\\"]"', "types"),
        ('"breaches": []', '"breaches": "[]"', "types"),
        ('"breaches": []', '"breaches": "none"', None),
        ('"breaches": []', '"breaches": null', None),
        ('"not_wanted"', '"Not wanted"', "values"),
        ('"not_wanted"', '"unwanted"', None),
        ('"c2"', '"C2"', "values"),
        ('"c2"', '"c3"', None),
        ('"c2"', '"c0"', None),
    ),
)

CHECKLIST = Family(
    '{"checks": [{"item": "relevance", "evidence": ["Order 1042 is cancelled."], "answer": "yes"}, '
    '{"item": "clarity", "evidence": [], "answer": "not_applicable"}], "reasoning": "It answers.", "confidence": 0.8}',
    (
        ('"yes"', '"Yes"', "values"),
        ('"yes"', '" YES "', "values"),
        ('"yes"', "yes", None),
        ('"yes"', "true", None),
        ('"yes"', '"true"', None),
        ('"yes"', '"yes, mostly"', None),
        ('"yes"', '"Y"', None),
        ('"yes"', '["yes"]', None),
        ('"not_applicable"', '"not applicable"', "values"),
        ('"not_applicable"', '"Not-Applicable"', "values"),
        ('"not_applicable"', '"N/A"', None),
        ('"not_applicable"', "null", None),
        ('"item"', '"Item"', "keys"),
        ('"item"', '"name"', None),
        ('"relevance"', '"Relevance"', "values"),
        ('"relevance"', '"clarity"', None),
        ('"relevance"', '"1. relevance"', None),
        ('"checks"', '"Checks"', "keys"),
        ('"checks"', '"check_s"', "keys"),
        ('"checks"', '"results"', None),
        ("0.8", '"0.8"', "types"),
        ("0.8", "0.8 // quite sure\n", "spelling"),
        ("0.8", "0.8 / 1", None),
        ("0.8", '"very"', None),
        ("[]", "[ , ]", None),
        ("[]", "{}", None),
        ("[]", "[...]", None),
    ),
)

FAILURE = Family(
    '{"reasoning": "The order was never cancelled.", "root": {"evidence": "c1", "what": "It cancels order 8.", '
    '"whose": "assistant", "kind": "wrong_argument"}, "no_return": {"evidence": "Order 7 is cancelled.", '
    '"what": "It says so.", "whose": "assistant", "kind": "false_statement"}, "confidence": 0.7}',
    (
        ('"assistant"', '"Assistant"', "values"),
        ('"assistant"', '"the assistant"', None),
        ('"assistant"', '["assistant"]', None),
        ('"wrong_argument"', '"Wrong argument"', "values"),
        ('"wrong_argument"', '"wrong-argument"', "values"),
        ('"wrong_argument"', '"wrongArgument"', "values"),
        ('"wrong_argument"', '"argument"', None),
        ('"wrong_argument"', '"wrong_argument | wrong_action"', None),
        ('"wrong_argument"', "null", None),
        ('"no_return"', '"noReturn"', "keys"),
        ('"no_return"', '"No Return"', "keys"),
        ('"no_return"', '"point_of_no_return"', None),
        ('"no_return": {', '"no_return": "root", "x": {', None),
        ('"c1"', '["c1"]', None),
        ('"c1"', "null", None),
        ('"whose"', '"Whose"', "keys"),
        ('"whose": "assistant", ', "", None),
        ("0.7", '"0.7"', "types"),
        ("0.7", "7/10", None),
    ),
)

VIOLATIONS = Family(
    '{"violations": [{"what": "It gives his address.", "evidence": ["He lives at 7 Elm Road."], "severity": "major"}], '
    '"reasoning": "It is told to a stranger.", "confidence": 0.9}',
    (
        ('"major"', '"Major"', "values"),
        ('"major"', '"MAJOR"', "values"),
        ('"major"', '" major "', "values"),
        ('"major"', '"severe"', None),
        ('"major"', '"minor or major"', None),
        ('"major"', "2", None),
        ('"severity"', '"Severity"', "keys"),
        ('"severity"', '"level"', None),
        ('"what"', '"What"', "keys"),
        ('"what"', '"description"', None),
        ('["He lives at 7 Elm Road."]', "[]", None),
        ('["He lives at 7 Elm Road."]', '"He lives at 7 Elm Road."', None),
        ('["He lives at 7 Elm Road."]', '"[\\"He lives at 7 Elm Road.\\"]"', "types"),
        ('"violations"', '"Violations"', "keys"),
        ('"violations"', '"findings"', None),
        ("0.9", '"0.9"', "types"),
        ("0.9", '"high"', None),
    ),
)

CALLS = Family(
    '{"calls": [{"call": "c1", "evidence": [], "needed": true, "right_tool": true, "right_arguments": false, '
    '"truthful": true}], "missing": [], "reasoning": "The number is wrong.", "confidence": 0.9}',
    (
        ('"c1"', '"C1"', "values"),
        ('"c1"', '"c2"', None),
        ('"c1"', '"c1: look_up"', None),
        ('"c1"', "1", None),
        ('"right_arguments"', '"rightArguments"', "keys"),
        ('"right_arguments"', '"Right Arguments"', "keys"),
        ('"right_arguments"', '"arguments"', None),
        ("false", "False", "spelling"),
        ("false", '"false"', "types"),
        ("false", '"No"', "types"),
        ("false", '"partly"', None),
        ("false", "0", None),
        ("false", "null", None),
        ('"missing": []', '"missing": "[]"', "types"),
        ('"missing": []', '"missing": "none"', None),
        ('"missing": []', '"missing": null', None),
        ("0.9", '"90%"', None),
    ),
)

STEP = Family(
    '{"reasoning": "To begin.", "message": "Hi, is anyone there?"}',
    (
        ('"message"', '"Message"', "keys"),
        ('"message"', '"text"', None),
        ('"message"', '"send_message"', None),
        ('"message"', '"leave": null, "message"', ""),
        ('"message"', '"leave": "", "message"', ""),
        ('"message"', '"leave": "fed up", "message"', None),
        ('"message"', '"leave": "null", "message"', None),
        ('"message"', '"Leave": null, "Message"', "keys"),
        ('"message"', '"tool": "send_message_to_target", "arguments"', None),
        ('"message"', '"tool": "send_message_to_target", "message"', ""),
        ('"Hi, is anyone there?"', "null", None),
        ('"Hi, is anyone there?"', '""', None),
        ('"Hi, is anyone there?"', '["Hi, is anyone there?"]', None),
        ('"Hi, is anyone there?"', '{"text": "Hi, is anyone there?"}', None),
        ('"Hi, is anyone there?"', "{}", None),
        ('"Hi, is anyone there?"', "true", None),
        ('"Hi, is anyone there?"', '"Hi, is anyone there?', None),
        ('"Hi, is anyone there?"', "“Hi, is anyone there?”", "spelling"),
    ),
)

REVIEW = Family(
    '{"faults": [{"kind": "invented_fact", "what": "It made up a code.", "evidence": ["AB12"], "decisive": true}], '
    '"obstacle": "impossible_goal", "obstacle_evidence": ["We sell none."], "reasoning": "It sells none.", '
    '"confidence": 0.9}',
    (
        ('"impossible_goal"', '"Impossible Goal"', "values"),
        ('"impossible_goal"', '"impossible-goal"', "values"),
        ('"impossible_goal"', '"IMPOSSIBLE_GOAL"', "values"),
        ('"impossible_goal"', '"impossible"', None),
        ('"impossible_goal"', '"the goal is impossible"', None),
        ('"impossible_goal"', '["impossible_goal"]', None),
        ('"impossible_goal"', "true", None),
        ('"impossible_goal"', "null", None),
        ('"invented_fact"', '"Invented Fact"', "values"),
        ('"invented_fact"', '"inventedFact"', "values"),
        ('"invented_fact"', '"hallucination"', None),
        ('"obstacle_evidence"', '"obstacleEvidence"', "keys"),
        ('"obstacle_evidence"', '"Obstacle Evidence"', "keys"),
        ('["We sell none."]', '"We sell none."', None),
        ('["We sell none."]', '"[\\"We sell none.\\"]"', "types"),
        ('"decisive": true', '"decisive": "yes"', "types"),
        ('"decisive": true', '"decisive": "maybe"', None),
        ('"decisive": true', '"decisive": 1', None),
        (', "decisive": true', "", None),
        ("0.9", '"0.9"', "types"),
        ("0.9", '"high"', None),
    ),
)
