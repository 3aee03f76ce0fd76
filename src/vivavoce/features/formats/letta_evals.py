"""Results of letta-evals: a conversation for each row of `<model>.jsonl`, with the sample from the `suite.json` beside.

Up to 0.16 rows are `{"type": "result", "result": {…}}` in one file, with the sample in them.
Source: letta_evals/models/results.py and letta_evals/streaming.py of 0.26, and the same of 0.9.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, cast

from vivavoce.conversations.format import Format, Loss, Place, Record, Row
from vivavoce.conversations.messages_of_formats import Message, Unreadable
from vivavoce.conversations.shapes import fields_in
from vivavoce.targets.letta_rows import read_letta

NAME = "letta-evals"
_RUN = re.compile(r"run_(\d+)\.jsonl")
_OF_SAMPLE = ("agent_args", "rubric_vars", "extra_vars", "rubric")
_NO_RESULTS = ("header", "summary")
_KEPT = ("agent_id", "model_handle", "model_name", "reward", "usage", "timing", "cost")


def _fits(record: Record) -> bool:
    result = _result(record.value)
    return result is not None and isinstance(result.get("trajectory"), list)


def _result(value: object) -> Row | None:
    """Return the result in a record, None if there is none."""
    row: Row = cast("Row", value) if isinstance(value, dict) else {}
    if row.get("type") == "result" and isinstance(row.get("result"), dict):
        return row["result"]
    return row if "sample_id" in row and "trajectory" in row else None


def _read(records: Iterable[Record], loss: Loss) -> Iterator[tuple[Place, Row]]:
    folders: dict[Path, dict[str, Row]] = {}
    first_model: dict[str, str] = {}
    for record in records:
        result = _result(record.value)
        if result is None:
            if (record.fields or {}).get("type") not in _NO_RESULTS:
                loss.broken("not a result of letta-evals: sample_id and trajectory are needed")
            continue
        folder = record.place.file.parent
        if folder not in folders:
            folders[folder] = _samples(folder)
        sample = _sample(result, folders[folder])
        name, model = str(sample.get("id", result.get("sample_id"))), str(_model(result))
        loss.line, loss.conversation = record.place.line, name
        try:
            row = _row(result, sample, loss)
        except Unreadable as error:
            loss.broken(str(error))
            continue
        again = first_model.setdefault(name, model) != model
        run = _RUN.fullmatch(record.place.file.name)
        trial = {"trial": int(run[1]) - 1} if run and int(run[1]) > 1 else {}
        yield record.place, {"id": f"{name}/{model}" if again else name, **trial, **row}


def _model(result: Row) -> object:
    return result.get("model_handle") or result.get("model_name") or ""


def _samples(folder: Path) -> dict[str, Row]:
    """Return the samples in the `suite.json` of a folder of results by their ids; none if it is missing or broken."""
    for place in (folder, folder.parent):
        try:
            data: Any = json.loads((place / "suite.json").read_text(encoding="utf-8"))
            samples = cast("list[Row]", data["samples"])
            return {str(sample["id"]): sample for sample in samples}
        except (OSError, ValueError, LookupError, TypeError):
            continue
    return {}


def _sample(result: Row, samples: Mapping[str, Row]) -> Row:
    known: object = result.get("sample")
    return cast("Row", known) if isinstance(known, dict) else samples.get(str(result.get("sample_id")), {})


def _row(result: Row, sample: Row, loss: Loss) -> Row:
    turns = result.get("trajectory")
    if not isinstance(turns, list) or not any(cast("list[Any]", turns)):
        error: Any = result.get("error")
        reason = cast("Row", error).get("message") if isinstance(error, dict) else error
        raise Unreadable(f"has no conversation{f': {reason}' if reason else ''}; viva convert leaves such a result out")
    messages: list[Message] = []
    asked: Any = sample.get("input")
    inputs = cast("list[Any]", asked) if isinstance(asked, list) else [asked]
    for place, turn in enumerate(cast("list[Any]", turns)):
        said = read_letta(cast("list[Any]", turn) if isinstance(turn, list) else [turn], loss)
        if not any(message["role"] == "user" for message in said):
            messages.append(_asked(inputs[place] if place < len(inputs) else None, loss))
        messages += said
    row: Row = {"messages": messages}
    truth = sample.get("ground_truth")
    if truth is not None and (not isinstance(truth, list) or len(cast("list[Any]", truth)) == _user_turns(messages)):
        row["ground_truth"] = truth
    elif truth is not None:
        loss.dropped("a list of truths that has not one for each turn")
    row |= {key: sample[key] for key in _OF_SAMPLE if sample.get(key)}
    grades = fields_in(result.get("grades"))
    kept: Row = {key: result[key] for key in _KEPT if result.get(key) is not None}
    kept["grades"] = {name: fields_in(grade).get("score") for name, grade in grades.items()}
    return {**row, "metadata": {NAME: kept}}


def _asked(said: object, loss: Loss) -> Message:
    """Return what the user said in a turn that does not have it."""
    if said is None:
        loss.guessed("what the user said: neither the turn nor a suite.json beside the file has it")
    return {"role": "user", "content": "(not recorded)" if said is None else str(said)}


def _user_turns(messages: Iterable[Message]) -> int:
    return sum(message["role"] == "user" for message in messages)


FORMAT = Format(NAME, "results of letta-evals", _fits, _read)
