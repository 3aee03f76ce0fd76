"""Test files of DeepEval as suites: what is written out in them, read as text, never run.

Test cases that are written with their values become rows; metrics, wherever they are made, become graders. What a value
needs code for, such as the reply of a bot, has no translation and is reported.
Source: the pages on test cases and on multi-turn metrics in DeepEval's documentation.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from vivavoce.conversations.format import Loss
from vivavoce.errors import Problem, UsageError
from vivavoce.features.formats.deepeval import row_of_case
from vivavoce.features.formats.suites import Suite, SuiteFormat

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


def _fits(path: Path, text: str) -> bool:
    return path.suffix == ".py" and re.search(r"^\s*(from|import) deepeval\b", text, re.MULTILINE) is not None


def _read(path: Path, text: str, loss: Loss) -> Suite:
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError) as error:
        raise UsageError(Problem(f"is not Python: {error}", path, getattr(error, "lineno", None))) from error
    names = dict(_assigned(tree))
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
    led = [row for row in rows if "goal" in row and "messages" not in row]
    asked = [row for row in rows if row not in recorded and row not in led]
    kinds: list[tuple[list[dict[str, Any]], dict[str, str]]]
    kinds = [(recorded, {"driver": "replay"}), (led, {"driver": "penelope"}), (asked, {})]
    most = max(kinds, key=lambda kind: len(kind[0]))
    if left := len(rows) - len(most[0]):
        loss.dropped("test case of another kind: a suite has recorded, led or asked conversations", count=left)
    suite: Suite = {"name": path.stem, **most[1], "dataset": {"rows": most[0]}}
    if most[0] is not recorded or not recorded:
        loss.guessed("the target: write a function reply(message) in bot.py")
        suite["target"] = {"kind": "function", "function": "bot.py:reply"}
    return {**suite, "graders": graders} if graders else suite


def _assigned(tree: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            yield node.targets[0].id, node.value


def _row(call: ast.Call, names: Mapping[str, ast.expr], number: int, loss: Loss) -> Iterator[dict[str, Any]]:
    case: dict[str, Any] = {}
    for keyword in call.keywords:
        if keyword.arg is None:
            loss.dropped("keyword arguments that are made by code")
            continue
        try:
            case[keyword.arg] = _value(keyword.value, names)
        except _NotWritten:
            loss.dropped(f"'{keyword.arg}' of a test case, which is made by code")
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
            loss.dropped(f"'{keyword.arg}' of {name}, which is made by code")
    threshold = options.pop("threshold", None)
    words = _CONFIG.get(name, {})
    for given in sorted(options.keys() - words.keys() - _OF_REPORTS):
        if name not in _MADE_OF_WORDS or given not in _OF_WORDS:
            loss.dropped(f"'{given}' of {name}")
    if name in _MADE_OF_WORDS:
        return _of_words(options, threshold, known, loss)
    metric = METRICS.get(name)
    if metric is None:
        loss.dropped(f"metric {name}")
        return {}
    grader: dict[str, Any] = {"kind": "metric", "metric": metric}
    if config := {ours: options[theirs] for theirs, ours in words.items() if theirs in options}:
        grader["config"] = config
    if metric == "toxicity" and threshold is not None:
        loss.dropped("'threshold' of ToxicityMetric: ours is the most that passes, theirs the least")
    elif threshold is not None:
        grader["threshold"] = threshold
    return {metric: grader}


def _of_words(options: Mapping[str, Any], threshold: Any, known: Mapping[str, Any], loss: Loss) -> dict[str, Any]:
    """Return a yes or no about the criteria; theirs is a number, so its threshold has no meaning here."""
    criteria = options.get("criteria") or options.get("evaluation_steps")
    if not criteria:
        loss.dropped("GEval without criteria that are written out")
        return {}
    words = " ".join(map(str, criteria)) if isinstance(criteria, list) else str(criteria)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    if threshold is not None:
        loss.dropped("'threshold' of GEval: ours says yes or no")
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
            return {str(one.arg): _value(one.value, names, depth - 1) for one in node.keywords}
        case _:
            raise _NotWritten


FORMAT = SuiteFormat("deepeval", "DeepEval", _fits, _read)
