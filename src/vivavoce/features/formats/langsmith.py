"""LangSmith's runs: a run per line, a list of them, an object with `runs`, or the Parquet of its bulk export.

A conversation is a thread, which the metadata of runs names, or a trace without one; `session_id` of a run is its
project. What went in and came out is in LangChain's messages or any others. They are read only.
Source: the schemas of LangSmith's Python package; its documentation of threads and of the bulk export.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any, cast

from vivavoce.conversations.format import Format, Loss, Member, Place, Record, Row
from vivavoce.conversations.shapes import drop_empty, fields_in, objects_in, seconds, text_in, tool_call, tool_names
from vivavoce.features.formats.dialects import as_text, parse_json, said_in
from vivavoce.features.formats.steps import Kind, Step, hand_down, passages_in
from vivavoce.features.formats.traced import conversations

NAME = "langsmith"
_KINDS: dict[str, Kind] = {
    "llm": "model",
    **dict.fromkeys(("chain", "prompt_chain"), "agent"),
    "tool": "tool",
    "retriever": "retrieval",
    **dict.fromkeys(("prompt", "parser", "embedding"), "other"),
}
_THREADS = ("session_id", "thread_id", "conversation_id")


def _fits(record: Record) -> bool:
    row = record.fields or {}
    return text_in(row.get("run_type")) in _KINDS and "inputs" in row and ("trace_id" in row or "dotted_order" in row)


def _read(records: Iterable[Record], loss: Loss) -> Iterator[tuple[Place, Row]]:
    return conversations(_members(records, loss), _steps, _beside, loss)


def _members(records: Iterable[Record], loss: Loss) -> Iterator[Member]:
    for record in records:
        waiting = deque([record.fields or {}])
        while waiting:
            run = waiting.popleft()
            waiting += objects_in(run.get("child_runs"))
            if text_in(run.get("id")) is None or "run_type" not in run:
                loss.add_broken("a record is not a run of LangSmith")
            else:
                yield _member(record.place, {key: value for key, value in run.items() if key != "child_runs"})


def _member(place: Place, run: Row) -> Member:
    identity = text_in(run.get("id")) or ""
    known = _metadata(run)
    thread = next((text for key in _THREADS if (text := text_in(known.get(key))) is not None), None)
    thread = thread or text_in(run.get("thread_id"))
    trace = text_in(run.get("trace_id")) or _root(run) or identity
    return Member(
        place, run, trace, thread, identity, text_in(run.get("parent_run_id")), seconds(run.get("start_time"))
    )


def _root(run: Row) -> str | None:
    """Return the trace that the order of a run begins with: a time, then the id of the first run."""
    first = (text_in(run.get("dotted_order")) or "").partition(".")[0]
    return first.partition("Z")[2] or None


def _node(known: Row) -> str | None:
    """Return the node of a graph of LangGraph in which a run is that is below another graph: `refunds:id|model:id`."""
    first, _, below = (text_in(known.get("langgraph_checkpoint_ns")) or "").partition("|")
    return (first.partition(":")[0] or None) if below else None


def _metadata(run: Row) -> Row:
    extra = fields_in(parse_json(run.get("extra")))
    return {**fields_in(parse_json(run.get("metadata"))), **fields_in(parse_json(extra.get("metadata")))}


def _steps(of_group: list[Member], loss: Loss) -> list[Step]:
    steps = [_step(member, loss) for member in of_group]
    hand_down(steps)
    return steps


def _step(member: Member, loss: Loss) -> Step:
    run = cast("Row", member.value)
    kind = _KINDS.get(str(run.get("run_type")), "other")
    step = Step(member.trace, member.identity or "", member.parent, kind, member.time, seconds(run.get("end_time")))
    inputs, outputs = parse_json(run.get("inputs")), parse_json(run.get("outputs"))
    known = _metadata(run)
    match kind:
        case "model" | "agent":
            step.inputs, step.outputs = said_in(inputs, "input", loss), said_in(outputs, "output", loss)
            step.agent = text_in(known.get("lc_agent_name")) or _node(known)
            parameters = fields_in(fields_in(parse_json(run.get("extra"))).get("invocation_params"))
            step.tools = tool_names(parameters.get("tools"))
        case "tool":
            _read_tool(step, run, inputs, outputs)
        case "retrieval":
            step.passages = passages_in(outputs)
        case _:
            pass
    usage = {"input_tokens": run.get("prompt_tokens"), "output_tokens": run.get("completion_tokens")}
    cost: Any = run.get("total_cost")
    step.about = drop_empty(
        {
            "model": text_in(known.get("ls_model_name")),
            "usage": {name: count for name, count in usage.items() if type(count) is int and count},
            "cost": float(cost) if isinstance(cost, int | float) or _is_number(cost) else None,
            "error": text_in(run.get("error")),
        }
    )
    return step


def _read_tool(step: Step, run: Row, inputs: Any, outputs: Any) -> None:
    arguments = fields_in(inputs)
    if arguments.keys() == {"input"}:
        arguments = parse_json(arguments["input"])
    output = fields_in(outputs).get("output", outputs)
    message = fields_in(output)
    message = fields_in(message.get("kwargs")) or fields_in(message.get("data")) or message
    called = text_in(message.get("tool_call_id"))
    step.call = tool_call(called, text_in(run.get("name")) or "unknown", arguments)
    result = message["content"] if called and "content" in message else output
    step.result = None if result is None else as_text(result)


def _is_number(value: Any) -> bool:
    return isinstance(value, str) and value.replace(".", "", 1).isdecimal()


def _beside(of_group: list[Member], loss: Loss) -> Row:
    labels: Row = {}
    tags: list[str] = []
    metadata: Row = {}
    for member in of_group:
        run = cast("Row", member.value)
        for name, stats in fields_in(parse_json(run.get("feedback_stats"))).items():
            score = fields_in(stats).get("avg")
            if isinstance(score, int | float):
                labels[name] = score
        listed_tags: Any = parse_json(run.get("tags"))
        tags += [str(tag) for tag in cast("list[Any]", listed_tags)] if isinstance(listed_tags, list) else []
        if member.parent is None:
            for key, known in _metadata(run).items():
                if key not in _THREADS:
                    metadata.setdefault(key, known)
    return drop_empty({"labels": labels, "tags": list(dict.fromkeys(tags)), "metadata": metadata})


FORMAT = Format(NAME, "LangSmith runs", _fits, _read, lists=(("runs",),))
