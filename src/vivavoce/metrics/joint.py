"""`JointJudge`: several judged metrics over one conversation in one call.

The conversation stands once in the prompt, and the task of each metric after it. It costs fewer tokens than a call for
each, and the answers may lean on each other; that is why a joint score has another fingerprint than one asked alone.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import combinations
from typing import Any, Unpack, cast

from pydantic import BaseModel, ConfigDict, Field, create_model

from vivavoce.errors import BudgetExhausted, ModelFault, UsageError
from vivavoce.messages import HumanMessage
from vivavoce.metrics.evaluation import Known, Named, choose
from vivavoce.metrics.judging import Asked, JudgedMetric
from vivavoce.metrics.metric import Conversation, evaluation_input
from vivavoce.metrics.pieces import Piece
from vivavoce.metrics.prompts import Prompt, Wording, read_prompt
from vivavoce.metrics.result import MetricResult
from vivavoce.metrics.transcript import Transcript, transcript
from vivavoce.metrics.types import MultiTurnEvaluationInput
from vivavoce.models.homemade import ModelLike
from vivavoce.models.model import ModelReply, Request, identity_of
from vivavoce.models.structured import read_structured
from vivavoce.pacing.waiting import wait_for
from vivavoce.records.failure import shorten
from vivavoce.records.usage import Usage, usage_of

_NAME = re.compile(r"[A-Za-z][\w-]{0,63}")
Answer = ModelReply | Exception
Questions = dict[str, dict[Piece, Asked]]
"""What each metric asks about each piece."""


class JointJudge:
    """Asks several judged metrics about one conversation at once, piece by piece where it is judged in pieces.

    Each metric reads its part of the answer itself, so that a part that is wrong is an error of that metric alone. What
    a metric would skip is not asked, and one that is left alone is asked as ever. What the calls used is told once, in
    the first result that was asked for jointly.

    Raises:
        UsageError: a metric asks no model, or in a way of its own; two of them are not asked alike: about the same
            part of what is shown of the conversation, the same model, with the same settings.
    """

    def __init__(self, metrics: Sequence[Named], model: ModelLike | None = None) -> None:
        self.metrics = [_joinable(metric) for metric in choose(metrics, model)]
        if not self.metrics:
            raise UsageError("a joint judge asks for metrics; give at least one")
        for one, other in combinations(self.metrics, 2):
            _check_alike(one, other)
        self.prompt: Prompt = read_prompt("joint.jinja", frozenset(("count", "tasks")), None, {})

    @property
    def names(self) -> Sequence[str]:
        """The names of the metrics."""
        return [metric.name for metric in self.metrics]

    def evaluate(
        self, conversation: Conversation, goal: str | None = None, **known: Unpack[Known]
    ) -> dict[str, MetricResult]:
        """Return the results for a conversation by the names of the metrics; works inside a running loop too.

        Raises:
            ValueError: the messages are malformed.
            BudgetExhausted: a limit on calls or cost is reached.
        """

        async def once() -> dict[str, MetricResult]:
            try:
                return await self.aevaluate(conversation, goal, **known)
            finally:
                await self.close()

        return wait_for(once())

    async def aevaluate(
        self, conversation: Conversation, goal: str | None = None, **known: Unpack[Known]
    ) -> dict[str, MetricResult]:
        """Do as `evaluate`."""
        return await self.measured(evaluation_input(conversation, goal=goal, **known))

    async def close(self) -> None:
        """Close the connections of the judges."""
        for metric in self.metrics:
            await metric.close()

    async def measured(self, given: MultiTurnEvaluationInput) -> dict[str, MetricResult]:
        """Return the results by the names of the metrics; what breaks becomes a result.

        Raises:
            BudgetExhausted: a limit on calls or cost is reached.
        """
        written = transcript(given.messages, self.metrics[0].shown)
        results: dict[str, MetricResult] = {}
        questions: Questions = {}
        for metric in self.metrics:
            try:
                if reason := metric.skipping(given):
                    results[metric.name] = metric.skipped(reason)
                else:
                    questions[metric.name] = {asked.piece: asked for asked in metric.questions(given, written)}
            except Exception as error:
                results[metric.name] = metric.failed(error)
        asked = [metric for metric in self.metrics if metric.name in questions]
        together, alone = _parted(asked, questions, given)
        joined, *lonely = await asyncio.gather(
            self._jointly(together, given, written, questions),
            *(_by_name(metric, given) for metric in alone),
        )
        for found in (joined, *lonely):
            results |= found
        return {name: results[name] for name in self.names}

    async def _jointly(
        self,
        metrics: Sequence[JudgedMetric],
        given: MultiTurnEvaluationInput,
        written: Transcript,
        questions: Questions,
    ) -> dict[str, MetricResult]:
        pieces = list(dict.fromkeys(piece for metric in metrics for piece in questions[metric.name]))
        calls = [self._call(metrics, written, piece, questions) for piece in pieces]
        answers = await asyncio.gather(*(_answers(metrics[0], *call) for call in calls))
        used = [usage for _, usage in answers if usage]
        marks = self._marks(metrics)
        results: dict[str, MetricResult] = {}
        for metric in metrics:
            mine = [
                (_joined(asked[metric.name], request), parts[metric.name])
                for (request, asked), (parts, _) in zip(calls, answers, strict=True)
                if metric.name in parts
            ]
            result = _result(metric, given, mine)
            joint = {
                "fingerprint": marks[metric.name],
                "usage": sum(used, Usage()) if used and not results else None,
                "extra": {**result.extra, "joint": list(marks)},
            }
            results[metric.name] = result.model_copy(update=joint)
        return results

    def _call(
        self, metrics: Sequence[JudgedMetric], written: Transcript, piece: Piece, questions: Questions
    ) -> tuple[Request, dict[str, Asked]]:
        """Return the one request about a piece, and the questions that it joins."""
        asked = {one.name: questions[one.name][piece] for one in metrics if piece in questions[one.name]}
        first = next(iter(asked.values())).request
        shown = f"{written.text(piece.first, piece.last)}\n"
        tasks = {Wording(name): Wording(_said(one).removeprefix(shown)) for name, one in asked.items()}
        task = self.prompt.render({"count": len(tasks), "tasks": tasks}).rstrip()
        shape = joint_reply(tuple((name, one.shape) for name, one in asked.items()))
        words = [*first.messages[:-1], HumanMessage(content=f"{shown}{task}")]
        return Request(words, schema=shape, settings=first.settings, trial=first.trial), asked

    def _marks(self, metrics: Sequence[JudgedMetric]) -> dict[str, str]:
        """Return the fingerprints of joint scores: those of the metrics, and of what they were asked together with."""
        together = [self.prompt.hash, [metric.fingerprint for metric in metrics]]
        return {metric.name: _hashed([metric.fingerprint, together]) for metric in metrics}


@lru_cache(256)
def joint_reply(parts: tuple[tuple[str, type[BaseModel]], ...]) -> type[BaseModel]:
    """Return the class of an answer with a part for each metric, under its name."""
    fields: dict[str, Any] = {f"part{i}": (shape, Field(alias=name)) for i, (name, shape) in enumerate(parts)}
    return create_model("JointReply", __config__=ConfigDict(extra="forbid"), **fields)


async def _by_name(metric: JudgedMetric, given: MultiTurnEvaluationInput) -> dict[str, MetricResult]:
    return {metric.name: await metric.measured(given)}


async def _answers(
    metric: JudgedMetric, request: Request, asked: Mapping[str, Asked]
) -> tuple[dict[str, Answer], Usage | None]:
    """Return the part of each metric of the answer to a joint request, or what went wrong with it."""
    judge = metric.judge
    assert judge is not None
    try:
        reply = await judge.complete(request)
    except BudgetExhausted:
        raise
    except Exception as error:
        return dict(_rescued(error, asked)), usage_of(error)
    if reply.parsed is None:
        silent = ModelFault("the judge gave no verdict", kind="format", evidence=shorten(reply.text))
        return dict.fromkeys(asked, silent), reply.usage
    return {name: _part(reply.parsed, name) for name in asked}, reply.usage


def _rescued(error: Exception, asked: Mapping[str, Asked]) -> Iterator[tuple[str, Answer]]:
    """Yield what is right of an answer that, even when it was repaired, is not right as a whole."""
    try:
        answer = json.loads(error.evidence or "") if isinstance(error, ModelFault) and error.kind == "format" else None
    except (ValueError, RecursionError):
        answer = None
    for name, one in asked.items():
        if not isinstance(answer, dict):
            yield name, error
            continue
        part = _part(cast("Mapping[str, Any]", answer), name)
        yield name, part if isinstance(part, ModelFault) else _checked(part, one.shape)


def _checked(part: ModelReply, shape: type[BaseModel]) -> Answer:
    try:
        read_structured(part.text, shape)
    except ValueError as wrong:
        return ModelFault(f"the judge's verdict is not one: {wrong}", kind="format", evidence=shorten(part.text))
    return part


def _part(answer: Mapping[str, Any], name: str) -> ModelReply | ModelFault:
    part: object = answer.get(name)
    if not isinstance(part, dict):
        seen = shorten(json.dumps(answer))
        return ModelFault(f"the judge's answer has no part '{name}'", kind="format", evidence=seen)
    return ModelReply(json.dumps(part), parsed=cast("dict[str, Any]", part))


def _result(
    metric: JudgedMetric, given: MultiTurnEvaluationInput, mine: Sequence[tuple[Asked, Answer]]
) -> MetricResult:
    replies = [part for _, part in mine if isinstance(part, ModelReply)]
    try:
        for _, part in mine:
            if isinstance(part, Exception):
                raise part
        return metric.result(given, [asked for asked, _ in mine], replies)
    except Exception as error:
        return metric.failed(error)


def _parted(
    metrics: Sequence[JudgedMetric], questions: Questions, given: MultiTurnEvaluationInput
) -> tuple[Sequence[JudgedMetric], Sequence[JudgedMetric]]:
    """Return the metrics that are asked together, and those on their own.

    These have nothing to ask, ask later questions that hang on the first answer, or ask another judge than the first.
    """
    together = [
        one
        for one in metrics
        if (len(questions[one.name]) == 1 or (questions[one.name] and not one.first_decides(given)))
        and one.judge_identity == metrics[0].judge_identity
    ]
    return (together, [one for one in metrics if one not in together]) if len(together) > 1 else ([], metrics)


def _joinable(metric: object) -> JudgedMetric:
    if not isinstance(metric, JudgedMetric):
        name = getattr(metric, "name", "it")
        raise UsageError(f"{name} is a {type(metric).__name__}, which no joint call can ask; give it on its own")
    if type(metric).aevaluate_conversation is not JudgedMetric.aevaluate_conversation or metric.calls_per_question > 1:
        raise UsageError(f"{metric.name} judges in a way of its own and cannot be joined; give it on its own")
    if not _NAME.fullmatch(metric.name):
        raise UsageError(f"'{metric.name}' cannot name a part of an answer; use letters, digits, _ and -")
    return metric


def _check_alike(one: JudgedMetric, other: JudgedMetric) -> None:
    if one.model and other.model and identity_of(one.model) != identity_of(other.model):
        raise UsageError(f"{one.name} and {other.name} cannot be asked jointly, for their models differ")
    for name in ("shown", "scope", "window", "tokens", "overlap", "settings", "trial"):
        mine, theirs = getattr(one, name), getattr(other, name)
        if mine != theirs:
            raise UsageError(
                f"{one.name} and {other.name} cannot be asked jointly, for their {name} differ: {mine}, {theirs}"
            )


def _joined(asked: Asked, request: Request) -> Asked:
    """Return a question in the words of the joint request; its own answer keeps its shape."""
    return replace(asked, request=replace(request, schema=asked.shape))


def _said(asked: Asked) -> str:
    return asked.request.messages[-1].text


def _hashed(decided: object) -> str:
    return hashlib.blake2b(json.dumps(decided).encode(), digest_size=8).hexdigest()
