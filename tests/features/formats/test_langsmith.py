"""Runs of LangSmith, made by its own package, become conversations."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from uuid import uuid4

import pandas
import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.load import dumpd
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, LLMResult
from langsmith import schemas
from langsmith.run_trees import RunTree

from features.formats.translation import read_values
from vivavoce.conversations.format import Loss
from vivavoce.conversations.reading import detect, read
from vivavoce.features.formats.langsmith import FORMAT

Json = dict[str, Any]
CALL = {"id": "c1", "type": "function", "function": {"name": "find", "arguments": '{"n": 1042}'}}
QUESTION = {"role": "user", "content": "Where is 1042?"}
CALLED = {"role": "assistant", "content": None, "tool_calls": [CALL]}
GOT = {"role": "tool", "tool_call_id": "c1", "content": "sent"}
ANSWER = {"role": "assistant", "content": "It was sent."}


def lc(kind: str, **fields: Any) -> Json:
    return {"lc": 1, "type": "constructor", "id": ["langchain", "schema", "messages", kind], "kwargs": fields}


def generations(message: Any) -> Json:
    return {"generations": [[{"text": "", "generation_info": {}, "type": "ChatGeneration", "message": message}]]}


def choices(message: Json) -> Json:
    return {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}], "model": "gpt"}


def run_fields(**fields: Any) -> Any:
    """Return a run of LangSmith that has begun."""
    return RunTree(**fields)


def turn(thread: str, history: list[Json], first: Json, second: Json) -> list[Json]:
    """Return the runs of a turn in which a tool is called, as LangSmith's own classes write them."""
    root = run_fields(
        name="desk",
        run_type="chain",
        inputs={"input": history[-1]["content"]},
        extra={"metadata": {"thread_id": thread, "customer": "ada"}},
        tags=["parcels"],
    )
    model = root.create_child(name="gpt", run_type="llm", inputs={"messages": [history]})
    model.end(outputs=first)
    tool = root.create_child(name="find", run_type="tool", inputs={"input": '{"n": 1042}'})
    tool.end(outputs={"output": "sent"})
    retriever = root.create_child(name="docs", run_type="retriever", inputs={"query": "1042"})
    retriever.end(outputs={"documents": [{"page_content": "Parcels leave daily.", "metadata": {}, "type": "Document"}]})
    again = root.create_child(
        name="gpt", run_type="llm", inputs={"messages": [*history, CALLED, GOT], "model": "gpt"}, outputs=second
    )
    again.end()
    root.end(outputs={"output": "It was sent."})
    return [as_run(run) for run in (again, root, model, tool, retriever)]


def as_run(tree: Any) -> Json:
    known = {key: getattr(tree, key) for key in schemas.RunBase.model_fields if hasattr(tree, key)}
    run = schemas.Run(
        **known,
        trace_id=tree.trace_id,
        dotted_order=tree.dotted_order,
        session_id=uuid4(),
        feedback_stats={"polite": {"n": 2, "avg": 0.5}} if tree.parent_run_id is None else None,
        prompt_tokens=3,
        completion_tokens=4,
    )
    return json.loads(run.model_dump_json())


def check(row: Json, loss: Loss) -> None:
    messages = [{key: message.get(key) for key in ("role", "content")} for message in row["messages"]]
    assert messages == [
        {key: message[key] for key in ("role", "content")} for message in (QUESTION, CALLED, GOT, ANSWER)
    ]
    assert row["messages"][1]["tool_calls"] == [CALL]
    assert row["messages"][3]["retrieval_context"] == ["Parcels leave daily."]
    assert (row["id"], row["labels"], row["tags"]) == ("talk", {"polite": 0.5}, ["parcels"])
    assert row["metadata"]["customer"] == "ada"
    assert row["metadata"]["usage"] == {"input_tokens": 6, "output_tokens": 8}
    assert loss.is_lossless, list(loss.lines())


def test_runs_of_its_package_are_read_in_every_file(tmp_path: Path) -> None:
    runs = turn("talk", [QUESTION], choices(CALLED), choices(ANSWER))
    lines, page, items, table = (tmp_path / name for name in ("r.jsonl", "page.json", "list.json", "r.parquet"))
    lines.write_text("\n".join(map(json.dumps, runs)))
    page.write_text(json.dumps({"runs": runs, "cursors": {}}))
    items.write_text(json.dumps(runs))
    cells = [
        {key: json.dumps(value) if isinstance(value, dict) else value for key, value in run.items()} for run in runs
    ]
    frame: Any = pandas.DataFrame(cells)
    frame.to_parquet(table)
    for file in (lines, page, items, table):
        assert detect(file) is FORMAT, file
        loss = Loss()
        [(_, row)] = read(file, FORMAT, loss)
        check(row, loss)


def test_runs_within_their_parents_are_read() -> None:
    again, root, model, tool, retriever = turn("talk", [QUESTION], choices(CALLED), choices(ANSWER))
    [row], loss = read_values(FORMAT, [{**root, "child_runs": [model, tool, retriever, again]}])
    check(row, loss)


def test_turns_of_a_thread_are_one_conversation() -> None:
    runs = turn("talk", [QUESTION], choices(CALLED), choices(ANSWER))
    more = [QUESTION, ANSWER, {"role": "user", "content": "Thanks."}]
    later = run_fields(
        name="gpt", run_type="llm", inputs={"messages": more}, extra={"metadata": {"session_id": "talk"}}
    )
    later.end(outputs={"role": "assistant", "content": "Bye."})
    alone = run_fields(name="chat", run_type="chain", inputs={"question": "Hi?"}, outputs={"answer": "Hello."})
    rows, _ = read_values(FORMAT, [as_run(alone), as_run(later), *runs])
    assert [[message["content"] for message in row["messages"]] for row in rows] == [
        ["Hi?", "Hello."],
        ["Where is 1042?", None, "sent", "It was sent.", "Thanks.", "Bye."],
    ]
    assert rows[0]["id"] == str(alone.trace_id)


def test_a_graph_that_returns_the_whole_history_is_read_once() -> None:
    graph = run_fields(name="LangGraph", run_type="chain", inputs={"messages": [QUESTION]})
    graph.end(outputs={"messages": [QUESTION, CALLED, GOT, ANSWER]})
    [row], _ = read_values(FORMAT, [as_run(graph)])
    assert [message["content"] for message in row["messages"]] == ["Where is 1042?", None, "sent", "It was sent."]


def _inside(item: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    keys = st.sampled_from(["messages", "generations", "choices", "message", "role", "content"])
    return st.lists(item, max_size=2) | st.dictionaries(keys, item)


odd: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False) | st.text(max_size=3) | st.sampled_from(["[]", "1970"]),
    _inside,
    max_leaves=6,
)
KEYS = (
    "trace_id",
    "start_time",
    "end_time",
    "inputs",
    "outputs",
    "extra",
    "metadata",
    "tags",
    "feedback_stats",
    "error",
)


@given(
    st.lists(
        st.fixed_dictionaries(
            {"id": st.sampled_from("abc"), "run_type": st.sampled_from(["llm", "chain", "tool", "retriever"]) | odd},
            optional={"parent_run_id": st.sampled_from("abc"), "child_runs": odd, **dict.fromkeys(KEYS, odd)},
        )
        | odd,
        max_size=4,
    )
)
def test_no_run_breaks_the_reader(runs: list[Any]) -> None:
    read_values(FORMAT, runs)


@pytest.mark.parametrize("record", [5, {"run_type": "llm"}, {"id": "1"}])
def test_what_is_no_run_is_told(record: Any) -> None:
    rows, loss = read_values(FORMAT, [record])
    assert rows == []
    assert [entry.what for entry in loss.entries()] == ["a record is not a run of LangSmith"]


def test_langchains_own_messages_are_read() -> None:
    call = {"name": "find", "args": {"n": 1042}, "id": "c1"}
    question, called = HumanMessage("Where is 1042?"), AIMessage("", tool_calls=[call])
    got, answer = ToolMessage("sent", tool_call_id="c1"), AIMessage("It was sent.")
    first = LLMResult(generations=[[ChatGeneration(message=called)]])
    second = LLMResult(generations=[[ChatGeneration(message=answer)]])
    root = run_fields(name="agent", run_type="chain", inputs={"input": "Where is 1042?"})
    model = root.create_child(name="gpt", run_type="llm", inputs={"messages": [[dumpd(question)]]})
    model.end(outputs=dumpd_result(first))
    tool = root.create_child(name="find", run_type="tool", inputs={"input": "{'n': 1042}"})
    tool.end(outputs={"output": dumpd(got)})
    again = root.create_child(
        name="gpt", run_type="llm", inputs={"messages": [[dumpd(question), dumpd(called), dumpd(got)]]}
    )
    again.end(outputs=dumpd_result(second))
    root.end(outputs={"output": "It was sent."})
    for last in (again, None):
        runs = [as_run(run) for run in (root, model, tool, last) if run is not None]
        [row], loss = read_values(FORMAT, runs)
        contents = [message["content"] for message in row["messages"]]
        assert contents == ["Where is 1042?", None, "sent", "It was sent."][: len(runs)]
        assert loss.is_lossless, list(loss.lines())


def dumpd_result(result: LLMResult) -> Json:
    """Return what a model made as LangChain's tracer writes it."""
    data = json.loads(result.model_dump_json())
    for generations_, messages in zip(data["generations"], result.generations, strict=True):
        for generation, message in zip(generations_, messages, strict=True):
            generation["message"] = dumpd(message.message)  # type: ignore[union-attr]
    return data
