"""The grader that compares with a recording."""

from __future__ import annotations

from collections.abc import Sequence

from vivavoce.grading.as_recorded import as_recorded
from vivavoce.grading.extractors import last_assistant
from vivavoce.grading.grader import Grader
from vivavoce.grading.graders import contains
from vivavoce.messages import AIMessage, HumanMessage
from vivavoce.records.details import AS_RECORDED, AsRecorded
from vivavoce.records.recording import RecordedReply, Recording, RecordingHead
from vivavoce.records.score import Failure, Score
from vivavoce.records.trajectory import Trajectory, Turn
from vivavoce.samples.sample import Sample

SAYS = Grader("says", last_assistant, contains, "ground_truth", "f")
SAMPLE = Sample(id="s", input=["a", "b", "c"], ground_truth=["one", "two", "three"])


def recording(*answers: str) -> Recording:
    replies = [
        RecordedReply(sample="s", target="bot", turn=index, said="abc"[index], messages=[AIMessage(content=text)])
        for index, text in enumerate(answers)
    ]
    return Recording("r.jsonl", RecordingHead(), [], replies)


def talk(*answers: str, failure: Failure | None = None) -> Trajectory:
    turns = [
        Turn(index=index, messages=[HumanMessage(content="abc"[index]), AIMessage(content=text)])
        for index, text in enumerate(answers)
    ]
    if failure is not None:
        message = HumanMessage(content="abc"[len(turns)])
        turns.append(Turn(index=len(turns), messages=[message], failure=failure))
    return Trajectory(turns=turns, failure=failure)


async def graded(
    new: Trajectory, *old: str, sample: Sample = SAMPLE, graders: Sequence[Grader] = (SAYS,)
) -> tuple[Score, AsRecorded]:
    score = await as_recorded("as_recorded", recording(*old), "hash", graders).grade(sample, new)
    return score, AsRecorded.model_validate(score.extra[AS_RECORDED])


def states(score: Score) -> list[tuple[str, float | None]]:
    return [(one.state, one.value) for one in score.turns or ()]


async def test_a_conversation_as_recorded_passes() -> None:
    score, found = await graded(talk("one", "two", "three"), "one", "two", "three")
    assert (score.value, score.passed, score.reason) == (1.0, True, "as recorded in all 3 turns")
    assert (found.same, found.comparable, found.difference, found.recorded) == (3, 3, None, {})


async def test_only_turns_that_answer_the_same_history_are_scored() -> None:
    score, found = await graded(talk("one", "2", "three"), "one", "two", "three")
    assert (score.value, score.passed) == (0.0, False)
    assert score.reason == "turn 2: the reply is “2”, recorded is “two”"
    assert states(score) == [("scored", 1.0), ("scored", 0.0), ("skipped", None)]
    assert [(finding.kind, finding.verdict, finding.turn) for finding in score.findings] == [("difference", "reply", 1)]
    assert (found.same, found.comparable, found.whole) == (1, 2, False)


async def test_the_recorded_reply_of_the_turn_that_differs_is_graded_too() -> None:
    _, found = await graded(talk("one", "2", "three"), "one", "two", "three")
    assert {name: (one.turn, one.value) for name, one in found.recorded.items()} == {"says": (1, 1.0)}


async def test_whole_conversations_are_comparable_where_only_the_last_turn_differs() -> None:
    whole = Grader("whole", last_assistant, contains, "none", "f", scope="conversation")
    sample = Sample(id="s", input=["a", "b"], ground_truth="two")
    _, found = await graded(talk("one", "2"), "one", "two", sample=sample, graders=[whole])
    assert {name: (one.turn, one.value) for name, one in found.recorded.items()} == {"whole": (None, 1.0)}
    _, found = await graded(talk("1", "two"), "one", "two", sample=sample, graders=[whole])
    assert found.recorded == {}


async def test_a_conversation_that_ended_with_an_error_has_no_score_unless_it_differed_before() -> None:
    failure = Failure(blame="target", kind="timeout", message="too slow")
    score, _ = await graded(talk("one", failure=failure), "one", "two", "three")
    assert (score.state, score.failure, states(score)) == ("error", failure, [("scored", 1.0), ("error", None)])
    score, _ = await graded(talk("1", failure=failure), "one", "two", "three")
    assert (score.value, states(score)) == (0.0, [("scored", 0.0), ("error", None)])


async def test_a_call_that_was_not_recorded_is_a_difference_without_a_grade_of_the_recorded_side() -> None:
    failure = Failure(blame="suite", kind="unrecorded", message="r.jsonl has no result of look()")
    score, found = await graded(talk("one", failure=failure), "one", "two", "three")
    assert (score.value, score.reason) == (0.0, "turn 2: r.jsonl has no result of look()")
    assert (found.comparable, found.calls.missed, found.recorded) == (1, 1, {})


async def test_a_row_without_a_recording_is_skipped() -> None:
    grader = as_recorded("as_recorded", recording("one"), "hash", [SAYS])
    score = await grader.grade(Sample(id="ss", input="a"), talk("one"))
    assert (score.state, score.reason) == ("skipped", "r.jsonl has no row 'ss'; did you mean 's'?")


async def test_a_difference_beyond_the_last_turn_belongs_to_no_turn() -> None:
    score, _ = await graded(talk("one"), "one", "two")
    assert [(finding.verdict, finding.turn) for finding in score.findings] == [("length", None)]
    assert score.reason == "turn 2: the new conversation has no turn 2, and the recorded one goes on"


def test_recording_and_graders_decide_the_fingerprint() -> None:
    def of(content: str, *graders: Grader) -> str:
        return as_recorded("as_recorded", recording("one"), content, graders).fingerprint

    assert len({of("a"), of("b"), of("a", SAYS)}) == 3


def test_judged_graders_need_verdicts_on_the_recorded_side_too() -> None:
    judged = Grader("kind", last_assistant, contains, "ground_truth", "f", judged=True)
    grader = as_recorded("as_recorded", recording("one"), "hash", [SAYS, judged])
    assert grader.verdicts(SAMPLE) == 1
