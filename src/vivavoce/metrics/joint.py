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
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import combinations
from typing import Any, Unpack, cast

from pydantic import BaseModel, ConfigDict, Field, create_model

from vivavoce.errors import BudgetExhausted, ModelFault, UsageError
from vivavoce.messages import HumanMessage
from vivavoce.metrics.config import Manner
from vivavoce.metrics.evaluation import Known, Named, choose
from vivavoce.metrics.judging import JudgedMetric
from vivavoce.metrics.metric import BaseMultiTurnMetric, Conversation, evaluation_input
from vivavoce.metrics.prompts import Prompt, Wording, read_prompt
from vivavoce.metrics.question import Answer, Ask, Piece, Question, Run
from vivavoce.metrics.result import MetricResult
from vivavoce.metrics.types import MultiTurnEvaluationInput, Reading
from vivavoce.models.answers import read_answer
from vivavoce.models.custom import ModelLike
from vivavoce.models.model import Model, ModelReply, Request, identity_of
from vivavoce.pacing.loops import wait_for
from vivavoce.records.score import Usage, shorten, usage_of
from vivavoce.validation import shows_options

_NAME = re.compile(r"[A-Za-z][\w-]{0,63}")
Part = ModelReply | Exception
"""The part of an answer that is about one metric, or what is wrong with it."""


@dataclass(frozen=True, slots=True, eq=False)
class _Member:
    """A metric of which something has to be asked."""

    metric: BaseMultiTurnMetric
    run: Run[MetricResult]
    ask: Ask

    @property
    def name(self) -> str:
        return self.metric.name

    async def alone(self) -> dict[str, MetricResult]:
        """Return its result, asked on its own."""
        return {self.name: await self.run.finish()}

    def is_doubted(self, parts: Mapping[Piece, tuple[Request, Part]]) -> bool:
        """Return whether the metric has doubts about one of its parts, and so has to be asked on its own."""
        answers = [Answer(question, part) for question, part in self._own(parts) if not isinstance(part, Exception)]
        return isinstance(self.metric, JudgedMetric) and any(map(self.metric.is_doubted, answers))

    def concluded(self, parts: Mapping[Piece, tuple[Request, Part]]) -> Run[MetricResult]:
        """Continue with its parts of the answers."""
        parts_of_it = list(self._own(parts))
        answers = [Answer(question, part) for question, part in parts_of_it if not isinstance(part, Exception)]
        wrong = next((part for _, part in parts_of_it if isinstance(part, Exception)), None)
        if wrong is None:
            self.run.go_on(answers)
        else:
            self.run.fail(wrong)
        return self.run

    def _own(self, parts: Mapping[Piece, tuple[Request, Part]]) -> Iterator[tuple[Question, Part]]:
        """Yield its questions, in the words of the joint requests, with its parts of the answers."""
        for question in self.ask.questions:
            request, part = parts[question.piece]
            yield _joined(question, request), part


class JointJudge:
    """Asks several judged metrics about one conversation at once, piece by piece where it is judged in pieces.

    Each metric reads its own part of the answer, so that a wrong part is an error of that metric alone. Skipped metrics
    are not asked; a single metric, or one with doubts about its part, is asked by itself. The usage of
    the calls is in the first joint result only.

    Raises:
        UsageError: a metric asks no model, or asks in its own way; or two of them differ in the model, its settings, or
            the part of the conversation that is shown.
    """

    def __init__(self, metrics: Sequence[Named], model: ModelLike | None = None) -> None:
        joinable = [_joinable(metric) for metric in choose(metrics, model)]
        if not joinable:
            raise UsageError("a joint judge needs at least one metric")
        for first, second in combinations(joinable, 2):
            _check_alike(first, second)
        self.metrics = [metric for metric, _ in joinable]
        self._shown = joinable[0][1].shown
        self.prompt: Prompt = read_prompt("joint.jinja", frozenset(("count", "shape", "tasks")), None, {})

    @classmethod
    def of(cls, metrics: Sequence[Named]) -> JointJudge | None:
        """Return a joint judge of metrics, None where they cannot be asked together."""
        try:
            return cls(metrics)
        except UsageError:
            return None

    @property
    def names(self) -> Sequence[str]:
        """The names of the metrics."""
        return [metric.name for metric in self.metrics]

    @shows_options
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

    @shows_options
    async def aevaluate(
        self, conversation: Conversation, goal: str | None = None, **known: Unpack[Known]
    ) -> dict[str, MetricResult]:
        """Async version of `evaluate`."""
        return await self.measured(evaluation_input(conversation, goal=goal, **known))

    async def close(self) -> None:
        """Close the connections of the judges."""
        for metric in self.metrics:
            await metric.close()

    async def measured(self, metric_input: MultiTurnEvaluationInput) -> dict[str, MetricResult]:
        """Return the results by the names of the metrics; errors become results.

        Raises:
            BudgetExhausted: a limit on calls or cost is reached.
        """
        return await self.measured_from(dict.fromkeys(self.names, Reading(metric_input)))

    async def measured_from(self, readings: Mapping[str, Reading]) -> dict[str, MetricResult]:
        """Return the same for readings of one conversation, by the names of the metrics.

        Raises:
            BudgetExhausted: a limit on calls or cost is reached.
        """
        reading = readings[self.names[0]]
        results: dict[str, MetricResult] = {}
        members: list[_Member] = []
        for metric in self.metrics:
            run = Run(metric.plan_for(readings[metric.name]))
            if isinstance(run.step, Ask):
                members.append(_Member(metric, run, run.step))
            else:
                results[metric.name] = await run.finish()
        together, alone = _parted(members)
        joined, *lonely = await asyncio.gather(self._jointly(together, reading), *(member.alone() for member in alone))
        for part_results in (joined, *lonely):
            results |= part_results
        return {name: results[name] for name in self.names}

    async def _jointly(self, members: Sequence[_Member], reading: Reading) -> dict[str, MetricResult]:
        pieces = list(dict.fromkeys(question.piece for member in members for question in member.ask.questions))
        calls = [self._call(members, reading, piece) for piece in pieces]
        answers = await asyncio.gather(*(_answers(members[0].ask.model, *call) for call in calls))
        usages = [usage for _, usage in answers if usage]
        fingerprints = self._fingerprints([member.metric for member in members])
        results: dict[str, MetricResult] = {}
        for member in members:
            parts = {
                piece: (request, of[member.name])
                for piece, (request, _), (of, _) in zip(pieces, calls, answers, strict=True)
                if member.name in of
            }
            usage = sum(usages, Usage()) if usages and not results else None
            if member.is_doubted(parts):
                result = (await member.alone())[member.name]
                known = [each for each in (usage, result.usage) if each is not None]
                results[member.name] = result.model_copy(update={"usage": sum(known, Usage()) if known else None})
                continue
            result = await member.concluded(parts).finish()
            joint = {
                "fingerprint": fingerprints[member.name],
                "usage": usage,
                "extra": {**result.extra, "joint": list(fingerprints)},
            }
            results[member.name] = result.model_copy(update=joint)
        return results

    def _call(self, members: Sequence[_Member], reading: Reading, piece: Piece) -> tuple[Request, dict[str, Question]]:
        """Return the one request about a piece, and the questions that it joins."""
        questions = {m.name: question for m in members for question in m.ask.questions if question.piece == piece}
        first = next(iter(questions.values())).request
        tasks = {Wording(name): Wording(question.task) for name, question in questions.items()}
        parts = ", ".join(f'"{name}": {{…}}' for name in questions)
        task = self.prompt.render({"count": len(tasks), "shape": Wording(f"{{{parts}}}"), "tasks": tasks}).rstrip()
        shape = joint_reply(tuple((name, question.shape) for name, question in questions.items()))
        transcript = reading.transcript(self._shown).text(piece.first, piece.last)
        words = [*first.messages[:-1], HumanMessage(content=f"{transcript}\n{task}")]
        return Request(
            words, schema=shape, settings=first.settings, trial=first.trial, sample_trial=first.sample_trial
        ), questions

    def _fingerprints(self, metrics: Sequence[BaseMultiTurnMetric]) -> dict[str, str]:
        """Return the fingerprints of joint scores: each covers its metric and those it was asked together with."""
        together = [self.prompt.hash, [metric.fingerprint for metric in metrics]]
        return {metric.name: _hashed([metric.fingerprint, together]) for metric in metrics}


@lru_cache(256)
def joint_reply(parts: tuple[tuple[str, type[BaseModel]], ...]) -> type[BaseModel]:
    """Return the class of an answer with a part for each metric, under its name."""
    fields: dict[str, Any] = {f"part{i}": (shape, Field(alias=name)) for i, (name, shape) in enumerate(parts)}
    return create_model("JointReply", __config__=ConfigDict(extra="forbid"), **fields)


async def _answers(
    judge: Model, request: Request, questions: Mapping[str, Question]
) -> tuple[dict[str, Part], Usage | None]:
    """Return the part of each metric of the answer to a joint request, or what went wrong with it."""
    try:
        reply = await judge.complete(request)
    except BudgetExhausted:
        raise
    except Exception as error:
        return dict(_rescued(error, questions)), usage_of(error)
    if reply.parsed is None:
        fault = ModelFault("the judge gave no verdict", kind="format", evidence=shorten(reply.text))
        return dict.fromkeys(questions, fault), reply.usage
    return {name: _part(reply.parsed, name) for name in questions}, reply.usage


def _rescued(error: Exception, questions: Mapping[str, Question]) -> Iterator[tuple[str, Part]]:
    """Yield the usable parts of an answer that is wrong as a whole, even after a repair."""
    try:
        unread = error.evidence if isinstance(error, ModelFault) and error.kind == "format" else None
        answer = read_answer(unread or "", {}).parsed
    except ValueError:
        answer = None
    for name, question in questions.items():
        if answer is None:
            yield name, error
            continue
        part = _part(answer, name)
        yield name, part if isinstance(part, ModelFault) else _checked(part, question.shape)


def _checked(part: ModelReply, shape: type[BaseModel]) -> Part:
    try:
        read = read_answer(part.text, shape)
    except ValueError as error:
        return ModelFault(f"the judge's answer cannot be used: {error}", kind="format", evidence=shorten(part.text))
    return replace(part, parsed=read.parsed, applied=read.noted(part.applied), checked=read.checked)


def _part(answer: Mapping[str, Any], name: str) -> ModelReply | ModelFault:
    part: object = answer.get(name)
    if not isinstance(part, dict):
        answer_text = shorten(json.dumps(answer))
        return ModelFault(f"the judge's answer has no part '{name}'", kind="format", evidence=answer_text)
    return ModelReply(json.dumps(part), parsed=cast("dict[str, Any]", part))


def _parted(members: Sequence[_Member]) -> tuple[Sequence[_Member], Sequence[_Member]]:
    """Return the metrics that are asked together, and those on their own.

    The latter have no question, have later ones that depend on the first answer, or ask another judge than the first.
    """
    together = [
        member
        for member in members
        if member.ask.questions
        and not member.ask.leads
        and identity_of(member.ask.model) == identity_of(members[0].ask.model)
    ]
    return (together, [member for member in members if member not in together]) if len(together) > 1 else ([], members)


def _joinable(metric: BaseMultiTurnMetric) -> tuple[BaseMultiTurnMetric, Manner]:
    """Return a metric and how it asks."""
    if metric.manner is None:
        raise UsageError(
            f"{metric.name} is a {type(metric).__name__}, which cannot be judged jointly; use it separately"
        )
    if not metric.stepwise or metric.manner.calls > 1:
        raise UsageError(f"{metric.name} has its own judging steps and cannot be joined; use it separately")
    if not _NAME.fullmatch(metric.name):
        raise UsageError(f"'{metric.name}' cannot name a part of an answer; use letters, digits, _ and -")
    return metric, metric.manner


def _check_alike(one: tuple[BaseMultiTurnMetric, Manner], other: tuple[BaseMultiTurnMetric, Manner]) -> None:
    (first, manner), (second, differing) = one, other
    if first.model and second.model and identity_of(first.model) != identity_of(second.model):
        raise UsageError(f"{first.name} and {second.name} cannot be joined: their models differ")
    for name in ("shown", "scope", "window", "tokens", "overlap", "settings", "trial"):
        mine, theirs = getattr(manner, name), getattr(differing, name)
        if mine != theirs:
            raise UsageError(f"{first.name} and {second.name} cannot be joined: their {name} differ: {mine}, {theirs}")


def _joined(question: Question, request: Request) -> Question:
    """Return a question in the words of the joint request; its own answer keeps its shape."""
    return replace(question, request=replace(request, schema=question.shape))


def _hashed(decided: object) -> str:
    return hashlib.blake2b(json.dumps(decided).encode(), digest_size=8).hexdigest()
