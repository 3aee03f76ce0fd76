from __future__ import annotations

import io
import json
from typing import Any

from vivavoce.records.run import Outcome
from vivavoce.records.score import Score, failed
from vivavoce.report.graded_run import GradedRun
from vivavoce.report.json_file import write_json, write_jsonl
from vivavoce.store.store import Store

from .cases import TIMEOUT, capitals, grade, keep, outcome


def lines(graded: GradedRun) -> list[str]:
    out = io.StringIO()
    write_jsonl(graded, out)
    return out.getvalue().splitlines()


def document(graded: GradedRun) -> dict[str, Any]:
    out = io.StringIO()
    write_json(graded, out)
    return json.loads(out.getvalue())


async def test_each_line_reads_back_as_the_outcome_that_was_stored(store: Store) -> None:
    outcomes = [
        outcome("a", {"correctness": capitals()}, reward=Score(value=0.5, extra={"w": 1})),
        outcome("b", {"exact": failed(TIMEOUT)}, failure=TIMEOUT),
    ]
    graded = await keep(store, outcomes)
    assert [Outcome.model_validate_json(line) for line in lines(graded)] == list(store.outcomes(graded.grading.id))


async def test_half_a_character_does_not_make_a_line_unreadable(store: Store) -> None:
    (line,) = lines(await keep(store, [outcome(texts=["\ud800 half a character"])]))
    read = Outcome.model_validate_json(line)
    assert read.attempt.trajectory.messages[1].text == "\\ud800 half a character"


async def test_a_line_names_the_parts_of_its_key_and_keeps_messages_as_on_the_wire(store: Store) -> None:
    (line,) = lines(await keep(store, [outcome("a")]))
    attempt = json.loads(line)["attempt"]
    assert attempt["key"] == {"sample_id": "a", "target": "bot", "trial": 0}
    assert attempt["trajectory"]["turns"][0]["messages"][1] == {"role": "assistant", "content": "Hello!"}


async def test_the_document_holds_the_run_its_summary_and_every_sample(store: Store) -> None:
    report = document(await keep(store, [outcome("a"), outcome("b", {"exact": 0.25})]))
    assert (report["run"]["id"], report["grading"]["fingerprints"]["exact"]) == ("run-1", "f1")
    assert (report["summary"]["verdict"], report["summary"]["graders"][0]["mean"]) == ("pass", 0.625)
    assert [sample["sample_id"] for sample in report["samples"]] == ["a", "b"]
    first = report["samples"][0]
    assert (first["sample"]["input"], first["scores"]["exact"]["value"]) == ("Hi", 1.0)
    assert first["trajectory"]["turns"][0]["messages"][0]["content"] == "Hi"


async def test_the_grades_of_turns_are_there_once(store: Store) -> None:
    graded = await keep(store, [outcome("a", {"correctness": capitals()})])
    scores = document(graded)["samples"][0]["scores"]["correctness"]
    assert [(turn["value"], turn["passed"]) for turn in scores["turns"]] == [(1.0, True), (1.0, True), (0.0, False)]
    assert (scores["passed"], scores["extra"]) == (False, {})


async def test_a_run_without_conversations_is_a_document_too(store: Store) -> None:
    assert document(await keep(store, []))["samples"] == []


async def test_a_number_that_is_none_does_not_break_the_document(store: Store) -> None:
    graded = await keep(store, [outcome(grades={"exact": grade(1, extra={"x": float("nan")})})])
    assert document(graded)["samples"][0]["scores"]["exact"]["extra"] == {"x": "NaN"}
