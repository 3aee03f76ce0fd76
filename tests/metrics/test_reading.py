from __future__ import annotations

from vivavoce.metrics.metric import evaluation_input
from vivavoce.metrics.transcript import EVERYTHING, Shown
from vivavoce.metrics.types import Reading

SAID = [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "Hello"}]


def test_a_transcript_is_written_once_for_all_who_see_the_same() -> None:
    reading = Reading(evaluation_input(SAID))
    bare = Shown(policy=False)
    assert reading.transcript(EVERYTHING) is reading.transcript(Shown())
    assert reading.transcript(EVERYTHING) is not reading.transcript(bare)
    assert reading.checker(bare) is reading.checker(Shown(policy=False))
    assert len(list(reading.transcripts)) == 2


def test_what_else_is_known_changes_no_transcript() -> None:
    reading = Reading(evaluation_input(SAID))
    other = reading.after(1).knowing(goal="Be greeted")
    assert (reading.since, reading.metric_input.goal) == (0, None)
    assert (other.since, other.metric_input.goal) == (1, "Be greeted")
    assert other.transcript(EVERYTHING) is reading.transcript(EVERYTHING)
    assert other.checker(EVERYTHING) is reading.checker(EVERYTHING)
