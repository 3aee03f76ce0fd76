"""What a user said in earlier sessions and is not known any more, by how many sessions ago it was."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from vivavoce.errors import UsageError
from vivavoce.metrics import ForgettingMetric
from vivavoce.metrics.result import MetricResult
from vivavoce.metrics.types import metric_input
from vivavoce.samples.row import read_sample


def talk(user: str, *said: str, truth: object = None) -> dict[str, Any]:
    messages = [{"role": ("user", "assistant")[place % 2], "content": text} for place, text in enumerate(said)]
    return {"user": user, "messages": messages, "ground_truth": truth}


def measured(*sessions: dict[str, Any], **options: Any) -> MetricResult:
    sample = read_sample({"sessions": list(sessions)}, line=1, position=0, base=Path())
    metric = ForgettingMetric(**options)
    return metric.evaluate_conversation(metric_input(sample, sample.messages or []))


SESSIONS = (
    talk("ana", "I live in Rome.", "Noted.", "My cat is Tom.", "Noted."),
    talk("bo", "I live in Oslo.", "Noted."),
    talk("ana", "Where do I live?", "In Rome.", truth="Rome"),
    talk("ana", "My cat?", "I do not know.", "Where do I live?", "In rome!", truth=["Tom", "Rome"]),
)


def test_it_counts_what_is_forgotten_by_the_users_own_sessions_since() -> None:
    result = measured(*SESSIONS)
    assert result.score == pytest.approx(1 / 3)
    assert result.details["by_distance"] == {1: {"asked": 1, "forgotten": 0}, 2: {"asked": 2, "forgotten": 1}}
    [finding] = result.findings
    assert (finding.turn, finding.data) == (4, {"told": 1, "distance": 2})
    assert "one session later 0 of 1, 2 sessions later 1 of 2" in str(result.reason)


@pytest.mark.parametrize(("answer", "score"), [("是４７１１。", 0.0), ("密码是4711。", 0.0), ("密码是14711。", 1.0)])
def test_a_truth_is_found_in_scripts_without_spaces(answer: str, score: float) -> None:
    result = measured(talk("ana", "我的密码是4711", "好的"), talk("ana", "密码是多少？", answer, truth="4711"))
    assert result.score == score


def test_a_distance_chooses_the_questions() -> None:
    assert measured(*SESSIONS, distance=1).score == 0.0
    assert measured(*SESSIONS, distance=2).score == 0.5
    assert measured(*SESSIONS, distance=3).state == "skipped"
    with pytest.raises(UsageError, match="distance must be at least 1"):
        ForgettingMetric(distance=0)


def test_what_was_said_again_counts_from_the_last_time() -> None:
    again = talk("ana", "I live in Rome, still.", "Noted.")
    result = measured(SESSIONS[0], again, talk("ana", "Where?", "Rome", truth="Rome"))
    assert result.details["by_distance"] == {1: {"asked": 1, "forgotten": 0}}


@pytest.mark.parametrize(
    "sessions",
    [
        (SESSIONS[0],),
        (talk("ana", "I live in Rome.", "Noted.", "Where?", "Rome", truth=[None, "Rome"]), SESSIONS[1]),
        (SESSIONS[0], talk("bo", "Where does she live?", "In Rome", truth="Rome")),
        (SESSIONS[0], talk("ana", "Where?", "In Italy", truth="Italy")),
    ],
)
def test_a_question_about_the_same_session_another_user_or_other_words_does_not_count(sessions: Any) -> None:
    assert measured(*sessions).state == "skipped"
