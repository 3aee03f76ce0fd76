"""DeepEval's cases become conversations, and its test files suites, without being run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cli.conftest import Viva
from features.formats.translation import back_and_forth, read_values
from vivavoce.conversations.format import Loss, Place, Record
from vivavoce.errors import UsageError
from vivavoce.features.formats.conversion import translate
from vivavoce.features.formats.deepeval import FORMAT

TOOL = {"name": "greet", "input_parameters": {"name": "Ada"}, "output": "ok"}
CASE: dict[str, Any] = {
    "name": "n1",
    "turns": [
        {"role": "user", "content": "I am Ada."},
        {"role": "assistant", "content": "Hello Ada.", "retrieval_context": ["names"], "tools_called": [TOOL]},
    ],
    "scenario": "greets",
    "expected_outcome": "is greeted",
    "chatbot_role": "a desk",
    "context": ["a fact"],
    "tags": ["names"],
    "additional_metadata": {"k": 1},
}
DUMPED: dict[str, Any] = {
    "turns": [
        {"role": "user", "content": "I am Ada.", "user_id": None, "tools_called": None},
        {
            "role": "assistant",
            "content": "Hello Ada.",
            "tools_called": [
                {"name": "greet", "type": "FUNCTION", "inputParameters": {"name": "Ada"}, "output": {"a": 1}}
            ],
        },
    ],
    "scenario": "greets",
    "expectedOutcome": "is greeted",
    "chatbotRole": "a desk",
    "metadata": {"k": 1},
    "tags": ["x"],
    "multimodal": False,
}
"""What `ConversationalTestCase.model_dump(by_alias=True)` of DeepEval 4 gives, without most of its nulls."""


def test_a_case_comes_back_as_it_was() -> None:
    assert back_and_forth(FORMAT, [CASE]) == [CASE]


def test_what_its_classes_dump_is_read() -> None:
    [row], loss = read_values(FORMAT, [DUMPED])
    assert [message["role"] for message in row["messages"]] == ["user", "assistant", "tool", "assistant"]
    assert json.loads(row["messages"][1]["tool_calls"][0]["function"]["arguments"]) == {"name": "Ada"}
    assert row["messages"][2]["content"] == '{"a": 1}'
    assert (row["goal"], row["scenario"], row["context"]) == ("is greeted", "greets", {"role": "a desk"})
    assert (row["tags"], row["metadata"]) == (["x"], {"k": 1})
    assert loss.entries() == []


def test_cells_of_its_tables_are_read() -> None:
    cells: dict[str, Any] = {key: value if isinstance(value, str) else json.dumps(value) for key, value in CASE.items()}
    assert FORMAT.fits(Record(Place(Path("a.csv"), 2), cells))
    [row], _ = read_values(FORMAT, [{**cells, "additional_metadata": None}])
    assert row["messages"][-1]["content"] == "Hello Ada."


def test_contexts_that_are_joined_and_metadata_in_cells_are_read() -> None:
    case = {"input": "q", "actual_output": "a", "context": "c", "retrieval_context": "x|y"}
    [row], loss = read_values(FORMAT, [{**case, "additional_metadata": '{"k": 1}'}])
    assert (row["context"], row["metadata"]) == ({"reference_contexts": ["c"]}, {"k": 1})
    assert row["messages"][1]["retrieval_context"] == ["x", "y"]
    assert [entry.kind for entry in loss.entries()] == ["guessed"]
    [row], loss = read_values(FORMAT, [{**case, "retrieval_context": ["x"], "additional_metadata": "not JSON"}])
    assert (row["metadata"], loss.entries()) == ({"additional_metadata": "not JSON"}, [])


def test_a_persona_is_the_user_and_the_rest_of_it_is_kept() -> None:
    case = {"scenario": "asks", "expected_outcome": "knows"}
    [row], loss = read_values_to_play({**case, "persona": {"characteristics": "Ann", "voice": "low"}})
    assert (row["persona"], row["metadata"]) == ("Ann", {"persona": {"voice": "low"}})
    assert [entry.kind for entry in loss.entries()] == ["aside"]
    [row], loss = read_values_to_play({**case, "user_description": "Ann", "persona": {"characteristics": "Ann"}})
    assert (row["persona"], "metadata" in row, loss.entries()) == ("Ann", False, [])


def read_values_to_play(case: dict[str, Any]) -> tuple[list[dict[str, Any]], Loss]:
    assert FORMAT.read is not None
    loss = Loss()
    return [row for _, row in FORMAT.read([Record(Place(Path("made.json"), 1), case)], loss)], loss


def test_single_turns_are_questions_or_exchanges() -> None:
    rows, loss = read_values(FORMAT, [{"input": "q", "actual_output": "a", "expected_output": "b", "context": ["c"]}])
    assert rows[0]["messages"][1] == {"role": "assistant", "content": "a"}
    assert (rows[0]["ground_truth"], rows[0]["context"]) == ("b", {"reference_contexts": ["c"]})
    assert loss.is_lossless


@pytest.mark.parametrize("case", [{"turns": [{"role": "narrator", "content": "x"}]}, {"turns": [5]}, {"comments": "x"}])
def test_a_case_that_cannot_be_read_is_told(case: dict[str, Any]) -> None:
    loss = Loss()
    assert FORMAT.read is not None
    assert list(FORMAT.read([Record(Place(Path("x.json"), 1), case)], loss)) == []
    assert loss.entries()[0].kind == "broken"


TESTS = """
from deepeval import assert_test
from deepeval.metrics import BiasMetric, ConversationalGEval, KnowledgeRetentionMetric
from deepeval.test_case import ConversationalTestCase, Turn

raise SystemExit("nothing of this file is run")
TURNS = [Turn(role="user", content="I am Ada."), Turn(role="assistant", content="Hello Ada.")]

def test_names():
    case = ConversationalTestCase(scenario="greets", turns=TURNS)
    polite = ConversationalGEval(name="Politeness", criteria="The assistant is polite.", threshold=0.7)
    assert_test(case, [KnowledgeRetentionMetric(threshold=0.5, model="gpt-4o"), polite, BiasMetric()])

def test_a_bot():
    case = ConversationalTestCase(turns=[Turn(role="user", content="hi"), Turn(role="assistant", content=bot("hi"))])
"""


def test_a_test_file_becomes_a_suite_and_says_what_has_no_translation(viva: Viva, tmp_path: Path) -> None:
    (tmp_path / "test_bot.py").write_text(TESTS)
    done = viva("convert", "test_bot.py", "suite.yaml")
    assert done.returncode == 0, done.stderr
    for fields in (
        "metric BiasMetric (line 12)",
        "'turns' of a test case, computed by code (line 15)",
        "'threshold'",
    ):
        assert fields in done.stderr
    valid = viva("validate", "suite.yaml", VIVAVOCE_JUDGE="openai:gpt-x")
    assert valid.returncode == 0, valid.stderr
    assert "1 recorded conversation" in valid.stdout
    suite = (tmp_path / "suite.yaml").read_text()
    assert "metric: knowledge_retention\n    threshold: 0.5" in suite
    assert "definition: The assistant is polite." in suite


def test_options_of_metrics_are_translated_or_told(tmp_path: Path) -> None:
    path, loss = tmp_path / "test_all.py", Loss()
    path.write_text(
        "from deepeval.metrics import *\n"
        "case = LLMTestCase(input='q', actual_output='a')\n"
        "metrics = [\n"
        "    TopicAdherenceMetric(relevant_topics=['names'], threshold=0.9, async_mode=False),\n"
        "    ToolCorrectnessMetric(should_consider_ordering=True, should_exact_match=True),\n"
        "    ToxicityMetric(threshold=0.9),\n"
        "]\n"
    )
    _, suite = translate(path, None, loss)
    assert suite["graders"] == {
        "topic_adherence": {
            "kind": "metric",
            "metric": "topic_adherence",
            "config": {"topics": ["names"]},
            "threshold": 0.9,
        },
        "tool_call_accuracy": {"kind": "metric", "metric": "tool_call_accuracy", "config": {"order": True}},
        "toxicity": {"kind": "metric", "metric": "toxicity"},
    }
    assert [(entry.kind, entry.what) for entry in loss.entries()] == [
        ("dropped", "'should_exact_match' of ToolCorrectnessMetric"),
        ("dropped", "'threshold' of ToxicityMetric: ours is a maximum, theirs a minimum"),
    ]


def test_what_is_no_suite_is_refused(tmp_path: Path) -> None:
    for name, text in (("a.py", "x = 1"), ("b.yaml", "name: x"), ("c.py", "from deepeval import x\ndef (")):
        (tmp_path / name).write_text(text)
        with pytest.raises(UsageError, match=r"is not a suite|is not Python"):
            translate(tmp_path / name, None, Loss())
    with pytest.raises(UsageError, match="did you mean 'deepeval'"):
        translate(tmp_path / "a.py", "deepval", Loss())
