"""DeepEval: its test cases and goldens as conversations, and its test files as suites.

Cases and goldens are read as it saves them in JSON, JSONL and CSV, and as its classes dump them. Turns with a role and
words become messages, the tools of a turn calls with their results; `scenario` and `expected_outcome` are what a tester
plays. Names come in snake_case and, by its aliases, in camelCase.
Of test files only what is written out in them is read, as text that is never run: cases that are written with their
values become rows, and metrics, wherever they are made, graders. What a value needs code for, such as the reply of a
bot, has no translation and is reported.
Source: the classes `ConversationalTestCase`, `ConversationalGolden`, `LLMTestCase` and `Golden` of the package; the
pages on test cases and on multi-turn metrics in its documentation.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

from vivavoce.comparing.json_values import BrokenJson, parse
from vivavoce.conversations.format import Format, Loss, Place, Record, Row
from vivavoce.conversations.shapes import Message, arguments_of, name_of, text_of, tool_call
from vivavoce.errors import Problem, UsageError
from vivavoce.features.formats.conversion import Suite, SuiteFormat

NAME = "deepeval"
_FIELDS = {
    "scenario": "scenario",
    "expected_outcome": "goal",
    "user_description": "persona",
    "input": "input",
    "expected_output": "ground_truth",
    "name": "id",
}
_OF_CONTEXT = {"role": "chatbot_role", "reference_contexts": "context"}
_TURN = frozenset(("role", "content", "retrieval_context", "tools_called"))
_OWN = frozenset(("turns", "scenario", "expected_outcome", "actual_output", "user_description", "chatbot_role"))


def _snake(value: Mapping[str, Any]) -> dict[str, Any]:
    """Return a mapping with its keys in snake_case, without those that hold nothing, or no."""
    fields = {re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", str(key)).lower(): item for key, item in value.items()}
    return {key: item for key, item in fields.items() if item not in (None, "", [], {}, False)}


def _fits(record: Record) -> bool:
    if record.fields is None:
        return False
    case = _snake(record.fields)
    turns = case.get("turns")
    if isinstance(turns, str):
        return "scenario" in case or "expected_outcome" in case
    if isinstance(turns, list):
        return all(isinstance(turn, Mapping) and "content" in turn for turn in cast("list[Any]", turns))
    return ("scenario" in case and "expected_outcome" in case) or {"input", "actual_output"} <= case.keys()


def _read(records: Iterable[Record], loss: Loss) -> Iterator[tuple[Place, Row]]:
    for record in records:
        loss.line, loss.conversation = record.place.line, None
        if record.fields is None:
            loss.add_broken("a test case must be an object {…}")
            continue
        row = row_of_case(record.fields, loss)
        if row is not None:
            yield record.place, row


def row_of_case(raw: Mapping[str, Any], loss: Loss) -> Row | None:
    """Return the row of a test case, or of a golden; None, and a line in the report, where it holds nothing to ask."""
    case = _snake(raw)
    case |= {key: _contexts(case[key], loss) for key in ("context", "retrieval_context") if key in case}
    row: Row = {ours: case.pop(theirs) for theirs, ours in _FIELDS.items() if theirs in case}
    loss.at(row)
    if context := {ours: case.pop(theirs) for ours, theirs in _OF_CONTEXT.items() if theirs in case}:
        row["context"] = context
    if tags := case.pop("tags", None):
        row["tags"] = tags if isinstance(tags, list) else [str(tags)]
    turns = _list_in(case.pop("turns", None))
    answer = case.pop("actual_output", None)
    if turns is not None:
        messages = _messages(turns, loss)
        if messages is None:
            return None
        row["messages"] = messages
    elif isinstance(answer, str):
        row["messages"] = _exchange(row.pop("input", ""), answer, case, loss)
    if expected := _list_in(case.pop("expected_tools", None)):
        row["reference_tool_calls"] = [_call(tool, None) for tool in map(_tool, expected) if tool]
    if rest := _rest(case, row, loss):
        row["metadata"] = rest
    if not row.keys() & {"messages", "input", "goal", "scenario"}:
        loss.add_broken("a test case without turns, input or scenario")
        return None
    if "scenario" in row and "goal" not in row and "messages" not in row:
        row["goal"] = row["scenario"]
        loss.add_guess("the goal, from the scenario: there is no expected outcome")
    return row


def _rest(case: Row, row: Row, loss: Loss) -> Row:
    """Return what a row of ours has in its metadata: theirs, and what is left of the case."""
    metadata = _object(case.pop("additional_metadata", None) or case.pop("metadata", None))
    if persona := _persona(case.pop("persona", None), row):
        metadata["persona"] = persona
        loss.aside("persona fields except description")
    for key in case:
        loss.unknown(key)
    return {**metadata, **case}


def _contexts(joined: Any, loss: Loss) -> Any:
    """Return the contexts of a cell of CSV, or of a line of JSONL, where DeepEval joins them."""
    if not isinstance(joined, str):
        return joined
    if "|" in joined:
        loss.add_guess("where a context ends: at each |, the separator of DeepEval")
    return joined.split("|")


def _object(value: Any) -> Row:
    """Return an object, be it the JSON of a cell; anything else stays under the name of the column."""
    if isinstance(value, str):
        with suppress(BrokenJson):
            value = parse(value)
    if isinstance(value, dict):
        return dict(cast("Row", value))
    return {} if value is None else {"additional_metadata": value}


def _persona(value: Any, row: Row) -> Any:
    """Put the description of a persona into the row, unless it is there; return what else there is."""
    if not isinstance(value, Mapping):
        return value
    persona = dict(cast("Mapping[str, Any]", value))
    described = persona.pop("characteristics", None)
    if row.setdefault("persona", described) != described:
        persona["characteristics"] = described
    if row["persona"] is None:
        del row["persona"]
    return persona


def _exchange(question: Any, answer: str, case: dict[str, Any], loss: Loss) -> list[Message]:
    question_message: Message = {"role": "user", "content": str(question)}
    extra = {key: case.pop(key) for key in ("retrieval_context", "tools_called") if key in case}
    return [question_message, *_turn({"role": "assistant", "content": answer, **extra}, 1, loss)]


def _list_in(value: Any) -> list[Any] | None:
    """Return a list, or that of a cell of a table, which is written as JSON."""
    if isinstance(value, str):
        try:
            value = parse(value)
        except BrokenJson:
            return None
    return cast("list[Any]", value) if isinstance(value, list) else None


def _messages(turns: list[Any], loss: Loss) -> list[Message] | None:
    messages: list[Message] = []
    for index, turn in enumerate(turns):
        fields = _snake(cast("Mapping[str, Any]", turn)) if isinstance(turn, Mapping) else {}
        if fields.get("role") not in ("user", "assistant") or not isinstance(fields.get("content", ""), str):
            loss.add_broken(f"turn {index}: needs a role (user or assistant) and content")
            return None
        messages += _turn(fields, index, loss)
    return messages


def _turn(turn: Mapping[str, Any], index: int, loss: Loss) -> Iterator[Message]:
    """Yield the calls that were made in a turn with their results, and what was said."""
    called = [tool for tool in map(_tool, _list_in(turn.get("tools_called")) or []) if tool]
    if called:
        calls = [_call(tool, f"call_{index}_{number}") for number, tool in enumerate(called)]
        yield {"role": "assistant", "content": None, "tool_calls": calls}
        for tool, call in zip(called, calls, strict=True):
            if "output" in tool:
                output = tool["output"]
                text = output if isinstance(output, str) else json.dumps(output, ensure_ascii=False)
                yield {"role": "tool", "content": text, "tool_call_id": call["id"]}
    message: Message = {"role": turn["role"], "content": turn.get("content", "")}
    if isinstance(turn.get("retrieval_context"), list):
        message["retrieval_context"] = turn["retrieval_context"]
    if rest := {key: value for key, value in turn.items() if key not in _TURN}:
        message["metadata"] = {NAME: rest}
        loss.aside("other keys of a turn", index)
    yield message


def _tool(value: Any) -> dict[str, Any]:
    tool = _snake(cast("Mapping[str, Any]", value)) if isinstance(value, Mapping) else {}
    return tool if "name" in tool else {}


def _call(tool: Mapping[str, Any], identity: str | None) -> dict[str, Any]:
    return tool_call(identity, str(tool["name"]), tool.get("input_parameters"))


def _write(rows: Iterable[Row], loss: Loss) -> Iterator[Any]:
    for row in rows:
        loss.at(row)
        context = cast("Row", row.get("context") or {})
        case: Row = {"name": row.get("id"), "turns": list(_turns(cast("list[Message]", row["messages"]), loss))}
        case |= {theirs: row[ours] for theirs, ours in _FIELDS.items() if theirs in _OWN and ours in row}
        case |= {theirs: context[ours] for ours, theirs in _OF_CONTEXT.items() if ours in context}
        case |= {"tags": row["tags"]} if row.get("tags") else {}
        case |= {"additional_metadata": row["metadata"]} if row.get("metadata") else {}
        for key in context.keys() - _OF_CONTEXT.keys():
            loss.add_dropped(f"'context.{key}' of a row")
        for key in row.keys() - {"id", "messages", "scenario", "goal", "persona", "context", "tags", "metadata"}:
            loss.add_dropped(f"'{key}' of a row")
        yield {key: value for key, value in case.items() if value is not None}


def _turns(messages: list[Message], loss: Loss) -> Iterator[Row]:
    """Yield turns of user and assistant; calls stand with the next words of the assistant."""
    called: list[Row] = []
    results: dict[str, str] = {}
    for index, message in enumerate(messages):
        match message["role"]:
            case "tool":
                results[str(message.get("tool_call_id"))] = text_of(message.get("content"))
                continue
            case "system" | "developer":
                loss.add_dropped("system message", index)
                continue
            case role:
                called += cast("list[Row]", message.get("tool_calls") or [])
        text = text_of(message.get("content"))
        if message.get("tool_calls") and not text:
            continue
        turn: Row = {"role": role, "content": text}
        if message.get("retrieval_context"):
            turn["retrieval_context"] = message["retrieval_context"]
        if role == "assistant" and called:
            turn["tools_called"] = [_write_call(call, results) for call in called]
            called = []
        yield turn
    if called:
        loss.add_dropped("tool calls after the last text", count=len(called))


def _write_call(call: Row, results: Mapping[str, str]) -> Row:
    output = results.get(str(call.get("id")))
    fields = {"name": name_of(call), "input_parameters": arguments_of(call)}
    return fields if output is None else {**fields, "output": output}


FORMAT = Format(NAME, "DeepEval test cases", _fits, _read, _write, document=list)


METRICS: Mapping[str, str] = {
    "TurnRelevancyMetric": "turn_relevancy",
    "ConversationRelevancyMetric": "turn_relevancy",
    "KnowledgeRetentionMetric": "knowledge_retention",
    "RoleAdherenceMetric": "role_adherence",
    "ConversationCompletenessMetric": "conversation_completeness",
    "TurnFaithfulnessMetric": "faithfulness",
    "FaithfulnessMetric": "faithfulness",
    "TopicAdherenceMetric": "topic_adherence",
    "GoalAccuracyMetric": "agent_goal_accuracy",
    "ToxicityMetric": "toxicity",
    "ToolCorrectnessMetric": "tool_call_accuracy",
}
"""Their metrics that ours measure, too; the numbers differ, for the questions to the judge do."""
_CONFIG: Mapping[str, Mapping[str, str]] = {
    "TopicAdherenceMetric": {"relevant_topics": "topics"},
    "ToolCorrectnessMetric": {"should_consider_ordering": "order"},
}
"""What options of theirs are called in the `config` of ours."""
_OF_WORDS = frozenset(("name", "criteria", "evaluation_steps"))
_OF_REPORTS = frozenset(("include_reason", "async_mode", "verbose_mode", "flaky"))
"""Options that change no score."""
_CASES = ("ConversationalTestCase", "ConversationalGolden", "LLMTestCase", "Golden")
_MADE_OF_WORDS = ("ConversationalGEval", "GEval")
_NOT_METRICS = ("BaseMetric", "BaseConversationalMetric")


class _NotWritten(ValueError):
    """A value is made by code."""


def _fits_suite(path: Path, text: str) -> bool:
    return path.suffix == ".py" and re.search(r"^\s*(from|import) deepeval\b", text, re.MULTILINE) is not None


def _read_suite(path: Path, text: str, loss: Loss) -> Suite:
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError) as error:
        raise UsageError(Problem(f"is not Python: {error}", path, getattr(error, "lineno", None))) from error
    names = dict(_assignments(tree))
    calls = sorted(
        (node for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)),
        key=lambda node: (node.lineno, node.col_offset),
    )
    rows: list[dict[str, Any]] = []
    graders: dict[str, Any] = {}
    for call in calls:
        name = call.func.id if isinstance(call.func, ast.Name) else ""
        loss.line = call.lineno
        if name in _CASES:
            rows += _row(call, names, len(rows), loss)
        elif name in METRICS or name in _MADE_OF_WORDS or (name.endswith("Metric") and name not in _NOT_METRICS):
            graders |= _grader(name, call, names, graders, loss)
    loss.line = 0
    return _suite(path, rows, graders, loss)


def _suite(path: Path, rows: list[dict[str, Any]], graders: dict[str, Any], loss: Loss) -> Suite:
    recorded = [row for row in rows if "messages" in row]
    goal_rows = [row for row in rows if "goal" in row and "messages" not in row]
    question_rows = [row for row in rows if row not in recorded and row not in goal_rows]
    kinds: list[tuple[list[dict[str, Any]], dict[str, str]]]
    kinds = [(recorded, {"driver": "replay"}), (goal_rows, {"driver": "penelope"}), (question_rows, {})]
    most = max(kinds, key=lambda kind: len(kind[0]))
    if left := len(rows) - len(most[0]):
        loss.add_dropped("test case of another kind: a suite has only one kind of conversation", count=left)
    suite: Suite = {"name": path.stem, **most[1], "dataset": {"rows": most[0]}}
    if most[0] is not recorded or not recorded:
        loss.add_guess("the target: write a function reply(message) in bot.py")
        suite["target"] = {"kind": "function", "function": "bot.py:reply"}
    return {**suite, "graders": graders} if graders else suite


def _assignments(tree: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            yield node.targets[0].id, node.value


def _row(call: ast.Call, names: Mapping[str, ast.expr], number: int, loss: Loss) -> Iterator[dict[str, Any]]:
    case: dict[str, Any] = {}
    for keyword in call.keywords:
        if keyword.arg is None:
            loss.add_dropped("computed keyword arguments")
            continue
        try:
            case[keyword.arg] = _value(keyword.value, names)
        except _NotWritten:
            loss.add_dropped(f"'{keyword.arg}' of a test case, computed by code")
    row = row_of_case(case, loss)
    if row is not None:
        yield {"id": row.pop("id", f"case-{number + 1}"), **row}


def _grader(
    name: str, call: ast.Call, names: Mapping[str, ast.expr], known: Mapping[str, Any], loss: Loss
) -> dict[str, Any]:
    options: dict[str, Any] = {}
    for keyword in call.keywords:
        try:
            options[str(keyword.arg)] = _value(keyword.value, names)
        except _NotWritten:
            loss.add_dropped(f"'{keyword.arg}' of {name}, computed by code")
    threshold = options.pop("threshold", None)
    words = _CONFIG.get(name, {})
    for option in sorted(options.keys() - words.keys() - _OF_REPORTS):
        if name not in _MADE_OF_WORDS or option not in _OF_WORDS:
            loss.add_dropped(f"'{option}' of {name}")
    if name in _MADE_OF_WORDS:
        return _of_words(options, threshold, known, loss)
    metric = METRICS.get(name)
    if metric is None:
        loss.add_dropped(f"metric {name}")
        return {}
    grader: dict[str, Any] = {"kind": "metric", "metric": metric}
    if config := {ours: options[theirs] for theirs, ours in words.items() if theirs in options}:
        grader["config"] = config
    if metric == "toxicity" and threshold is not None:
        loss.add_dropped("'threshold' of ToxicityMetric: ours is a maximum, theirs a minimum")
    elif threshold is not None:
        grader["threshold"] = threshold
    return {metric: grader}


def _of_words(options: Mapping[str, Any], threshold: Any, known: Mapping[str, Any], loss: Loss) -> dict[str, Any]:
    """Return a yes or no about the criteria; theirs is a number, so its threshold has no meaning here."""
    criteria = options.get("criteria") or options.get("evaluation_steps")
    if not criteria:
        loss.add_dropped("GEval without literal criteria")
        return {}
    words = " ".join(map(str, criteria)) if isinstance(criteria, list) else str(criteria)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    if threshold is not None:
        loss.add_dropped("'threshold' of GEval: ours is pass/fail")
    name = re.sub(r"\W+", "_", str(options.get("name") or "criteria")).strip("_").lower() or "criteria"
    while name in known:
        name += "_2"
    return {name: {"kind": "metric", "metric": "aspect_critic", "config": {"definition": words}}}


def _value(node: ast.expr, names: Mapping[str, ast.expr], depth: int = 20) -> Any:
    """Return a value that is written out; a call of a class is a mapping of its keyword arguments."""
    if not depth:
        raise _NotWritten
    match node:
        case ast.Constant():
            return node.value
        case ast.List() | ast.Tuple():
            return [_value(item, names, depth - 1) for item in node.elts]
        case ast.Dict():
            keys = [_value(key, names, depth - 1) for key in node.keys if key is not None]
            if len(keys) != len(node.values):
                raise _NotWritten
            return dict(zip(keys, (_value(item, names, depth - 1) for item in node.values), strict=True))
        case ast.JoinedStr() if all(isinstance(part, ast.Constant) for part in node.values):
            return "".join(str(part.value) for part in node.values if isinstance(part, ast.Constant))
        case ast.Name() if node.id in names:
            return _value(names[node.id], names, depth - 1)
        case ast.Call(func=ast.Name(id="Turn" | "ToolCall"), args=[]):
            return {str(keyword.arg): _value(keyword.value, names, depth - 1) for keyword in node.keywords}
        case _:
            raise _NotWritten


SUITE = SuiteFormat("deepeval", "DeepEval", _fits_suite, _read_suite)
