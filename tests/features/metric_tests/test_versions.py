"""Versions of conversations as rows: what each says of itself, and what a judge does not see."""

from __future__ import annotations

from typing import Any

import pytest

from vivavoce.errors import UsageError
from vivavoce.features.metric_tests.versions import (
    KEY,
    OWN,
    Version,
    as_they_are,
    chosen_defects,
    require_recorded,
    versions,
)
from vivavoce.samples.rows import read_samples
from vivavoce.samples.sample import Sample
from vivavoce.testing.defects import DEFECTS, SEEN_BY
from vivavoce.testing.defects.harmless_edits import PERSUASIVE

SAMPLES = list(require_recorded(read_samples(OWN)))


def version(row: dict[str, Any]) -> Version:
    return Version.model_validate(row["metadata"][KEY])


def rows(*defects: str, number: int = 1) -> list[dict[str, Any]]:
    return list(versions(SAMPLES[:number], defects))


def test_a_conversation_comes_with_each_defect_and_edit() -> None:
    results = rows("loop", "insult")
    assert [version(row).kind for row in results] == [*["defect"] * 2, *["harmless"] * 10, *["persuasion"] * 3]
    assert results[0]["id"] == "order-address~loop"
    assert {version(row).of for row in results} == {"order-address"}
    assert len({row["id"] for row in results}) == len(results)


def test_as_it_is_a_conversation_is_unchanged() -> None:
    (row,) = as_they_are(SAMPLES[:1])
    assert row["messages"] == [message.to_dict() for message in SAMPLES[0].messages or ()]
    assert (row["id"], version(row).kind, version(row).edits) == ("order-address", "as_it_is", ())


def test_every_row_is_a_sample_again() -> None:
    for row in rows(*DEFECTS, number=10):
        sample = Sample.model_validate(row)
        assert sample.messages
        assert sample.turn_count == version(row).turns


def test_a_defect_says_in_which_turn_it_is_and_persuasion_comes_with_it() -> None:
    loop, *rest = rows("loop")
    assert version(loop).edits == ("loop",)
    assert version(loop).turn is not None
    persuaded = [version(row) for row in rest if version(row).kind == "persuasion"]
    assert [each.edits for each in persuaded] == [("loop", edit) for edit in PERSUASIVE]
    assert {each.turn for each in persuaded} == {version(loop).turn}


def test_a_reply_in_another_language_is_not_padded_in_the_users() -> None:
    assert not [row for row in rows("switched_language") if version(row).kind == "persuasion"]


def test_what_is_known_of_single_turns_is_left_out() -> None:
    messages = [
        {"role": "user", "content": "When?"},
        {"role": "assistant", "content": "At nine in the morning, every day."},
    ] * 2
    known: dict[str, Any] = {"ground_truth": ["a", "b"], "reference_tool_calls": [[], None], "expect": [{}, {}]}
    sample = Sample.model_validate({"id": "x", "messages": messages, "goal": "To know.", "trial": 2, **known})
    for row in versions([sample], ["repeated_exchange"]):
        assert not known.keys() & row.keys()
        assert (row["goal"], row["trial"], version(row).of) == ("To know.", 2, "x#3")


def test_the_model_that_spoke_is_kept() -> None:
    sample = SAMPLES[0].model_copy(update={"metadata": {"model": "m-1"}})
    assert {version(row).speaker for row in versions([sample], ["loop"])} == {"m-1"}


def test_the_defects_are_those_that_the_metrics_are_there_to_see() -> None:
    assert chosen_defects(["toxicity"]) == ["insult"]
    assert set(chosen_defects(["toxicity", "coherence"])) == {"insult", *SEEN_BY["coherence"]}
    assert chosen_defects(["mine.py:metric"]) == list(DEFECTS)
    assert chosen_defects(["toxicity"], ["loop", "loop"]) == ["loop"]
    with pytest.raises(UsageError, match="no defect 'lop'; did you mean 'loop'"):
        chosen_defects(["toxicity"], ["lop"])


def test_a_row_without_a_recording_is_refused() -> None:
    with pytest.raises(UsageError, match="sample 1, 'x', is not a recorded conversation"):
        list(require_recorded([Sample(id="x", input="Hi")]))


def test_the_goal_has_the_names_of_the_conversation() -> None:
    rows_by_edit = {version(row).edit: row for row in rows("loop")}
    messages = str(rows_by_edit["renamed_ids"]["messages"])
    new = rows_by_edit["renamed_ids"]["goal"].partition("wants order ")[2].partition(" ")[0]
    assert new != "GX-4821"
    assert new in messages
    assert "GX-4821" not in messages
    assert rows_by_edit["loop"]["goal"] == rows_by_edit["renamed_people"]["goal"] == SAMPLES[0].goal


def test_a_version_of_the_users_own_stays_in_the_metadata() -> None:
    sample = SAMPLES[0].model_copy(update={"metadata": {"version": "2.1"}})
    assert {row["metadata"]["version"] for row in versions([sample], ["loop"])} == {"2.1"}
