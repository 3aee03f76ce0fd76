"""Code written for other tools: results by their shape, and extractors that look for messages of others."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from pydantic import BaseModel

from vivavoce.errors import GraderFault, UsageError
from vivavoce.grading.extractors import build_extractor
from vivavoce.grading.foreign import from_foreign
from vivavoce.grading.grader import as_grade
from vivavoce.metrics import MetricResult
from vivavoce.plugins import load_object


class Graded(BaseModel):
    """As letta-evals has it."""

    score: float
    rationale: str | None = None
    metadata: dict[str, Any] = {}


@dataclass
class Scored:
    score: float
    reason: str = ""
    metadata: dict[str, Any] = field(default_factory=dict[str, Any])


@pytest.mark.parametrize(
    ("value", "read"),
    [  # pyright: ignore[reportUnknownArgumentType]
        (Graded(score=1.0, rationale="r", metadata={"a": 1}), (1.0, "r", {"a": 1})),
        (Scored(0.25), (0.25, None, {})),
        (SimpleNamespace(score=True, rationale=7), (1.0, "7", {})),
    ],
)
def test_a_result_of_another_tool_is_taken_by_its_shape(value: Any, read: tuple[Any, ...]) -> None:
    grade = as_grade(value, "mine")
    assert (grade.score, grade.rationale, grade.metadata) == read


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (SimpleNamespace(score=None), r"a types\.SimpleNamespace whose score is None, not a number"),
        (SimpleNamespace(score="good"), "whose score is 'good', not a number"),
        (SimpleNamespace(score=7), "score is not between 0 and 1"),
        (SimpleNamespace(value=1.0), "mine returned SimpleNamespace"),
        (Scored, "mine returned type"),
        (MetricResult(name="m", score=1.0), "mine returned MetricResult"),
        (Graded(score=0.0, metadata={"error": "no key"}), "Graded with the error: no key"),
    ],
)
def test_what_has_no_score_is_refused_by_name_and_never_read_as_zero(value: Any, said: str) -> None:
    with pytest.raises(GraderFault, match=said):
        as_grade(value, "mine")


def test_what_is_no_result_stays_as_it_is() -> None:
    assert [from_foreign(value) for value in (0.5, {"score": 1}, "x")] == [0.5, {"score": 1}, "x"]


@pytest.fixture
def _letta() -> Iterator[None]:
    """A stand-in for the packages, which are too large to install for a test."""
    for name in ("letta_client", "letta_client.types", "letta_evals", "letta_evals.extractors"):
        sys.modules[name] = ModuleType(name)
    exec("class AssistantMessage: ...", vars(sys.modules["letta_client.types"]))
    exec("def get_assistant_messages(trajectory): return []", vars(sys.modules["letta_evals.extractors"]))
    yield
    for name in ("letta_client", "letta_client.types", "letta_evals", "letta_evals.extractors"):
        del sys.modules[name]


@pytest.mark.parametrize(
    ("body", "used"),
    [
        (
            "from letta_client.types import AssistantMessage\n"
            "def pick(trajectory, config):\n"
            "    return next((m.content for t in trajectory for m in t if isinstance(m, AssistantMessage)), '')\n",
            "letta_client.types.AssistantMessage",
        ),
        (
            "import letta_client.types\n"
            "def pick(trajectory, config):\n"
            "    return str([isinstance(m, letta_client.types.AssistantMessage) for m in trajectory[0]])\n",
            "letta_client",
        ),
        (
            "def pick(trajectory, config):\n    from letta_client.types import AssistantMessage\n    return ''\n",
            "letta_client.types",
        ),
        (
            "from letta_evals.extractors import get_assistant_messages\n"
            "def words(trajectory):\n"
            "    return get_assistant_messages(trajectory)\n"
            "def pick(trajectory, config):\n"
            "    return ' '.join(words(trajectory))\n",
            "letta_evals.extractors.get_assistant_messages",
        ),
    ],
)
@pytest.mark.usefixtures("_letta")
def test_an_extractor_that_looks_for_messages_of_another_tool_is_refused(body: str, used: str, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(body)
    with pytest.raises(UsageError, match=f"pick uses {used}, and would find no such messages here"):
        build_extractor("mine.py:pick", {}, tmp_path)


@pytest.mark.usefixtures("_letta")
def test_one_that_names_them_in_its_signature_alone_is_not(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "from letta_client.types import AssistantMessage\n"
        "def pick(trajectory: list[list[AssistantMessage]], config: dict) -> str:\n"
        "    return trajectory[-1][-1].text\n"
    )
    assert load_object("mine.py:pick", tmp_path)
    build_extractor("mine.py:pick", {}, tmp_path)
