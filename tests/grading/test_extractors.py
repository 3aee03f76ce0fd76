"""Extractors: which part of a conversation is graded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from conversations import REFUND
from vivavoce.errors import GraderFault, UsageError
from vivavoce.grading.extractors import View, build_extractor
from vivavoce.grading.metrics import FunctionGrading
from vivavoce.messages import AIMessage, HumanMessage, ToolCall, ToolMessage, read_messages, split_turns
from vivavoce.run.drivers import replay
from vivavoce.samples.sample import Sample

VIEW = View(
    turns=[
        [
            HumanMessage(content="Where is it?"),
            AIMessage(content="Let me look.", tool_calls=[ToolCall(id="a", name="find", args={"id": 1})]),
            ToolMessage(tool_call_id="a", content="in Rome"),
            AIMessage(content="RESULT: Rome, 12 May"),
        ],
        [
            HumanMessage(content="And the others?"),
            AIMessage(
                tool_calls=[ToolCall(id="b", name="find", args={"id": 2}), ToolCall(id="c", name="count", args={})]
            ),
            ToolMessage(tool_call_id="c", content="3"),
            ToolMessage(tool_call_id="b", content="in Bern"),
            AIMessage(content="One in Bern"),
            AIMessage(content="and two unknown, 13 May, 14 May"),
        ],
    ],
    state={"fruit": "apples", "facts": {"n": 1}},
)


def extract(name: str, **config: Any) -> str:
    found = build_extractor(name, config, Path())(VIEW)
    assert isinstance(found, str)
    return found


@pytest.mark.parametrize(
    ("name", "config", "found"),
    [
        ("last_assistant", {}, "and two unknown, 13 May, 14 May"),
        ("first_assistant", {}, "Let me look."),
        (
            "all_assistant",
            {"separator": "|"},
            "Let me look.|RESULT: Rome, 12 May|One in Bern|and two unknown, 13 May, 14 May",
        ),
        ("last_turn", {"separator": " "}, "One in Bern and two unknown, 13 May, 14 May"),
        ("pattern", {"pattern": r"(\d+) May", "group": 1}, "13"),
        ("pattern", {"pattern": r"(\d+) May", "group": 1, "search_all": True}, "13 14"),
        ("pattern", {"pattern": "RESULT: (.*)", "group": 1}, ""),
        ("pattern", {"pattern": "nowhere"}, ""),
        ("after_marker", {"marker": "RESULT:"}, ""),
        ("after_marker", {"marker": "13 ", "include_marker": True}, "13 May, 14 May"),
        ("tool_arguments", {"tool_name": "find"}, '{"id": 1}'),
        ("tool_output", {"tool_name": "find"}, "in Rome"),
        ("tool_output", {"tool_name": "count"}, "3"),
        ("memory_block", {"block_label": "fruit"}, "apples"),
        ("memory_block", {"block_label": "facts"}, '{"n": 1}'),
        ("memory_block", {"block_label": "absent"}, ""),
    ],
)
def test_each_extractor_finds_its_part(name: str, config: dict[str, Any], found: str) -> None:
    assert extract(name, **config) == found


SILENT_AT_LAST = View(
    [
        [HumanMessage(content="Hello"), AIMessage(content=""), AIMessage(content="Paris")],
        [HumanMessage(content="And?"), AIMessage(content="Rome"), AIMessage(content=None), AIMessage(content="")],
        [HumanMessage(content="So?"), AIMessage(content="", tool_calls=[ToolCall(name="find", args={})])],
    ]
)


@pytest.mark.parametrize(
    ("name", "config", "turns", "found"),
    [
        ("last_assistant", {}, 3, ""),
        ("last_assistant", {}, 1, "Paris"),
        ("first_assistant", {}, 3, ""),
        ("all_assistant", {"separator": "|"}, 3, "|Paris|Rome||"),
        ("last_turn", {"separator": "|"}, 2, "Rome||"),
        ("last_turn", {"separator": "|"}, 3, ""),
        ("pattern", {"pattern": "[A-Z]?"}, 2, ""),
        ("pattern", {"pattern": "[A-Z]"}, 2, "R"),
    ],
)
def test_a_message_that_says_nothing_is_an_answer_and_one_that_calls_tools_is_none(
    name: str, config: dict[str, Any], turns: int, found: str
) -> None:
    assert build_extractor(name, config, Path())(View(SILENT_AT_LAST.turns[:turns])) == found


def test_the_words_of_a_refusal_are_an_answer() -> None:
    view = View([[HumanMessage(content="Hi"), AIMessage(content="Yes?"), AIMessage(content=None, refusal="No.")]])
    assert build_extractor("last_assistant", {}, Path())(view) == "No."


def test_the_output_of_parallel_calls_is_found_by_id_and_not_by_place() -> None:
    only_second = View([VIEW.turns[1]])
    assert build_extractor("tool_output", {"tool_name": "find"}, Path())(only_second) == "in Bern"


def test_tool_calls_and_transcript_show_everything() -> None:
    assert extract("tool_calls").count('"name"') == 3
    assert "Human: Where is it?" in extract("transcript")
    assert "→ count({})" in extract("transcript")


def test_memory_of_a_target_that_has_none_is_a_fault() -> None:
    with pytest.raises(GraderFault, match="does not report its memory"):
        build_extractor("memory_block", {"block_label": "x"}, Path())(View([]))


@pytest.mark.parametrize(
    ("name", "config", "said"),
    [
        ("last_assistnt", {}, "no extractor 'last_assistnt'; did you mean 'last_assistant'?"),
        ("tool_output", {}, "'tool_output' needs the option 'tool_name'"),
        ("tool_output", {"tool": "x"}, "no option 'tool'; did you mean 'tool_name'?"),
        ("pattern", {"pattern": "("}, "not a regular expression"),
        ("pattern", {"pattern": "a", "group": "one"}, "option 'group' of 'pattern'"),
        ("transcript", {"x": 1}, "it takes none"),
        ("last_assistant", {"x": 1}, "known: agent"),
    ],
)
def test_a_wrong_name_or_option_is_told_before_anything_runs(name: str, config: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said.replace("(", r"\(").replace("?", r"\?")):
        build_extractor(name, config, Path())


async def used(reference: str, config: dict[str, Any], folder: Path) -> str:
    found = build_extractor(reference, config, folder)(VIEW)
    assert not isinstance(found, str)
    return await found


async def test_an_extractor_of_the_user_sees_turns_config_and_state(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "def pick(trajectory, config, agent_state):\n"
        "    return f\"{len(trajectory)} {trajectory[0][0].text} {config['a']} {agent_state['fruit']}\"\n"
        "def wrong(trajectory, config):\n"
        "    return 3\n"
        "def other(conversation):\n"
        "    return ''\n"
    )
    assert await used("mine.py:pick", {"a": "b"}, tmp_path) == "2 Where is it? b apples"
    with pytest.raises(GraderFault, match="must return text; it returned int"):
        await used("mine.py:wrong", {}, tmp_path)
    with pytest.raises(UsageError, match="other: too many positional arguments; it is called with trajectory, config"):
        build_extractor("mine.py:other", {}, tmp_path)


@pytest.mark.parametrize(
    ("name", "agent", "submission"),
    [
        ("last_assistant", "triage", "I hand you over."),
        ("first_assistant", "REFUNDS", "Refunded."),
        ("all_assistant", "triage", "I hand you over."),
        ("last_turn", "triage", ""),
        ("last_turn", "refunds", "Refunded."),
        ("last_assistant", "billing", ""),
    ],
)
def test_the_words_of_one_agent_can_be_graded(name: str, agent: str, submission: str) -> None:
    _, turns = split_turns(read_messages(REFUND))
    assert build_extractor(name, {"agent": agent}, Path())(View(turns)) == submission


async def test_a_tool_that_was_not_called_leaves_nothing_to_grade() -> None:
    grader = FunctionGrading(function="contains", extractor="tool_arguments", extractor_config={"tool_name": "absent"})
    sample = Sample(id="a", messages=[HumanMessage(content="Hi"), AIMessage(content="{}")], ground_truth="{}")
    score = await grader.grader("found", Path()).grade(sample, replay(sample))
    assert (score.state, score.reason) == ("skipped", "absent was not called")
