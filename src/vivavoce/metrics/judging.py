"""`JudgedMetric`: asks a model about a conversation, checks the answer, and computes the score from it in code."""

from __future__ import annotations

import hashlib
import json
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import Any, ClassVar, Unpack

from pydantic import BaseModel, ValidationError
from typing_extensions import TypedDict

from vivavoce.errors import ModelFault, UsageError
from vivavoce.messages import HumanMessage, SystemMessage
from vivavoce.metrics.config import MetricConfig, Scope
from vivavoce.metrics.evidence import Checker
from vivavoce.metrics.metric import BaseMultiTurnMetric
from vivavoce.metrics.options import read_options
from vivavoce.metrics.pieces import Piece, cut
from vivavoce.metrics.prompts import HERE, Prompt, Wording, read_prompt
from vivavoce.metrics.result import About, MetricResult
from vivavoce.metrics.silence import SILENT
from vivavoce.metrics.transcript import EVERYTHING, Shown, Transcript, acts, quoted, transcript
from vivavoce.metrics.types import MultiTurnEvaluationInput
from vivavoce.models.asking import ask_all
from vivavoce.models.default_judge import DefaultJudge
from vivavoce.models.homemade import ModelLike
from vivavoce.models.model import Model, ModelReply, Request, identity_of
from vivavoce.pacing.waiting import wait_for
from vivavoce.records.counting import turn_span
from vivavoce.records.failure import shorten
from vivavoce.records.score import Evidence, Finding, FindingState, Score
from vivavoce.records.usage import charge, total
from vivavoce.user_code import source_of

GIVEN = frozenset(("goal", "instructions", "context", "reference", "must", "must_not", "focus", "so_far"))
"""What every prompt may ask for: the fields of the input, the turn that is judged, and what earlier pieces showed."""

ANALYSIS = "analysis"
"""What of the context may change while a conversation grows."""


class JudgingOptions(TypedDict, total=False):
    """What every judged metric takes besides its own: how it asks, and about what part of a conversation."""

    name: str
    threshold: float | None
    scope: Scope
    window: int
    """Turns in a window."""
    shown: Shown
    """What of the conversation the judge sees."""
    prompt: str | Path | None
    """Another template, as text or as a path."""
    blocks: Mapping[str, str]
    """Parts of the template by name, each with what replaces it."""
    settings: Mapping[str, Any]
    """Settings of the model; `temperature` is 0 unless it is given, and None leaves it to the model."""
    tokens: int
    """About how much of a conversation one judgement may see; longer ones are judged in overlapping pieces."""
    overlap: int
    """Turns that two such pieces share."""
    trial: int
    """Which repetition of the same question this is."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What one answer of a judge comes to; `turns` is how many turns it is about.

    The score is None where there was nothing to judge, and the reasoning says so. Where a conversation is judged in
    pieces, `turns` is what this one weighs: its turns, or as many things as the judge found in it. `evidence` is what
    it rests on besides its findings, and `extra` what only this metric knows.
    """

    score: float | str | bool | None
    reasoning: str
    confidence: float | None = None
    findings: Sequence[Finding] = ()
    evidence: Sequence[Evidence] = ()
    extra: Mapping[str, Any] = field(default_factory=dict[str, Any])
    turns: int = 1


@dataclass(frozen=True, slots=True)
class Asked:
    """One question to a judge; the evidence of its answer can be looked up with `checker`."""

    request: Request
    given: MultiTurnEvaluationInput
    checker: Checker
    piece: Piece

    @property
    def shape(self) -> type[BaseModel]:
        """The class that the answer must match."""
        assert isinstance(self.request.schema, type)
        return self.request.schema

    def finding(
        self,
        kind: str,
        what: str,
        verdict: str,
        state: FindingState,
        evidence: Sequence[str] = (),
        turn: int | None = None,
        data: Mapping[str, Any] | None = None,
    ) -> Finding:
        """Return one thing of an answer with its evidence looked up, at the turn of the first of it unless given."""
        found = tuple(self.checker.checked(evidence))
        place = turn if turn is not None else next((one.turn for one in found if one.verified), None)
        return Finding(
            kind=kind, what=what, verdict=verdict, state=state, turn=place, evidence=found, data=dict(data or {})
        )


class JudgedMetric(BaseMultiTurnMetric):
    """A metric that asks a model.

    A subclass names the file of its `template`, the `variables` of its own in it, the class that the answer must match
    (`shape`), and how a verdict is read from an answer (`read`). The model is asked once for each piece of the
    conversation; without a model, or without what is listed in `needs`, the metric is skipped and says why.
    """

    judged = True
    template: ClassVar[str]
    version: ClassVar[str] = "2"
    needs: ClassVar[tuple[str, ...]] = ()
    of_assistant: ClassVar[bool] = False
    """Whether only what the assistant says and does is judged, so that without any of it there is nothing to judge."""
    calls_per_question = 1
    """How many calls one question takes, where each of them is answered."""
    nothing: ClassVar[str] = "nothing in this conversation is what this metric judges"
    """Why the metric is skipped where the conversation holds nothing that it judges."""

    def __init__(self, config: MetricConfig, model: ModelLike | None = None, **options: Unpack[JudgingOptions]) -> None:
        options = read_options(JudgingOptions, options)
        super().__init__(_renamed(config, options), model)
        self._default = DefaultJudge()
        self._fingerprints: dict[str | None, str] = {}
        self.scope: Scope = options.get("scope", "conversation")
        self.window = options.get("window", 5)
        self.shown = options.get("shown", EVERYTHING)
        settings = {"temperature": 0.0, **options.get("settings", {})}
        self.settings: Mapping[str, Any] = {name: value for name, value in settings.items() if value is not None}
        self.tokens = options.get("tokens", 100_000)
        self.overlap = options.get("overlap", 2)
        self.trial = options.get("trial", 0)
        if self.window < 1 or self.tokens < 1 or self.overlap < 0:
            raise UsageError(f"{self.name}: a window holds at least 1 turn, a piece 1 token, an overlap 0 turns")
        self.prompt: Prompt = read_prompt(
            self.template, GIVEN | self.own_variables, options.get("prompt"), options.get("blocks", {})
        )

    own_variables: ClassVar[frozenset[str]] = frozenset()
    """The variables of the prompt that this metric fills itself."""

    @abstractmethod
    def shape(self, given: MultiTurnEvaluationInput) -> type[BaseModel]:
        """Return the class that an answer must match."""

    @abstractmethod
    def read(self, answer: Mapping[str, Any], asked: Asked) -> Verdict:
        """Return the verdict that an answer comes to.

        Raises:
            ValueError: the answer contradicts itself.
        """

    def variables(self, given: MultiTurnEvaluationInput) -> Mapping[str, object]:
        """Return the values of the prompt's own variables."""
        del given
        return {}

    def question(
        self, given: MultiTurnEvaluationInput, written: Transcript, piece: Piece
    ) -> tuple[type[BaseModel], Mapping[str, object]] | None:
        """Return the class of an answer about a piece, and the prompt's own variables; None for nothing to judge."""
        if self.of_assistant and not answered(written, piece):
            return None
        return self.shape(given), self.variables(given)

    def inapplicable(self, given: MultiTurnEvaluationInput) -> str | None:
        """Say why this conversation cannot be judged, None when it can."""
        if missing := self.unmet(given):
            return missing
        if not any(message.role in ("user", "assistant") for message in given.messages):
            return "nobody says anything in this conversation" if given.messages else "the conversation is empty"
        if self.of_assistant and not any(acts(message) for message in given.messages):
            return SILENT
        return None

    def unmet(self, given: MultiTurnEvaluationInput) -> str | None:
        """Say what of `needs` is not known."""
        return next((f"needs a {name}, and none is given" for name in self.needs if not getattr(given, name)), None)

    def merge(self, verdicts: Sequence[Verdict]) -> Verdict:
        """Return one verdict of those about the pieces of a conversation: their mean, by the turns they are about."""
        scored = [(float(verdict.score), verdict.turns) for verdict in verdicts if verdict.score is not None]
        turns = sum(turns for _, turns in scored)
        return merged(sum(score * turns for score, turns in scored) / turns if turns else None, verdicts)

    def conclude(self, verdict: Verdict) -> Verdict:
        """Return the verdict on the whole conversation.

        Raises:
            ModelFault: what the judge found does not carry it.
        """
        return verdict

    def unasked(self, given: MultiTurnEvaluationInput) -> MetricResult:
        """Return the result for a conversation of which nothing has to be asked."""
        del given
        return self.skipped(self.nothing, fingerprint=self.fingerprint)

    def evaluate_conversation(self, evaluation_input: MultiTurnEvaluationInput) -> MetricResult:
        """Judge a conversation."""
        return wait_for(self.aevaluate_conversation(evaluation_input))

    async def aevaluate_conversation(self, evaluation_input: MultiTurnEvaluationInput) -> MetricResult:
        """Judge a conversation.

        Raises:
            ModelFault: the judge failed, or answered outside the shape that it was asked for.
        """
        if reason := self.skipping(evaluation_input):
            return self.skipped(reason)
        questions = self.questions(evaluation_input)
        replies = await self.answers(evaluation_input, questions)
        return self.result(evaluation_input, questions, replies)

    def skipping(self, given: MultiTurnEvaluationInput) -> str | None:
        """Say why this metric does not judge a conversation, None when it does."""
        if reason := self.inapplicable(given):
            return reason
        return None if self.judge else "needs a judge: give a model, or set VIVAVOCE_JUDGE"

    @property
    def judge(self) -> Model | None:
        """The model that is asked: the metric's own, or else the one that VIVAVOCE_JUDGE names when it is asked."""
        return self._default.model if self.model is None else self.model

    @property
    def judge_identity(self) -> str | None:
        """What tells the model that is asked from all others, None where there is none."""
        return self._default.identity if self.model is None else identity_of(self.model)

    async def close(self) -> None:
        """Close the connections of the judge; a later question opens new ones."""
        await super().close()
        await self._default.close()

    def questions(
        self, given: MultiTurnEvaluationInput, written: Transcript | None = None, since: int = 0
    ) -> list[Asked]:
        """Return what the judge is asked about a conversation, for each piece of it that holds something to judge.

        Of a conversation that is judged by turns or windows, `since` leaves out those of the first so many turns.
        """
        written = written or transcript(given.messages, self.shown)
        checker = Checker(given.messages, written)
        values = self._values(given)
        asked: list[Asked] = []
        for piece in cut(written, self.scope, self.window, self.tokens, self.overlap, since):
            if question := self.question(given, written, piece):
                shape, own = question
                request = self._request(given, written, piece, {**values, **own}, shape)
                asked.append(Asked(request, given, checker, piece))
        return asked

    def first_decides(self, given: MultiTurnEvaluationInput) -> bool:
        """Say whether the answer about the first piece decides what is asked about the others."""
        del given
        return False

    async def answers(self, given: MultiTurnEvaluationInput, questions: list[Asked]) -> list[ModelReply]:
        """Ask the judge all questions about a conversation.

        A metric whose `first_decides` replaces the later ones in the list.

        Raises:
            ModelFault: it failed, or did not answer in the shape asked for.
        """
        del given
        if len(questions) == 1:
            return [await self.ask(questions[0])]
        return await ask_all(self.ask(question) for question in questions)

    async def ask(self, asked: Asked) -> ModelReply:
        """Ask the judge one question.

        Raises:
            ModelFault: it failed, or did not answer in the shape asked for.
        """
        judge = self.judge
        assert judge is not None
        return await judge.complete(asked.request)

    def result(
        self, given: MultiTurnEvaluationInput, questions: Sequence[Asked], replies: Sequence[ModelReply]
    ) -> MetricResult:
        """Return the result that the judge's answers come to.

        Raises:
            ModelFault: one of them is outside the shape that was asked for.
        """
        if not questions:
            return self.unasked(given)
        usage = total(reply.usage for reply in replies)
        try:
            verdicts = [self._verdict(reply, asked) for reply, asked in zip(replies, questions, strict=True)]
            verdict = self.conclude(verdicts[0] if len(verdicts) == 1 else self.merge(verdicts))
        except Exception as error:
            charge(error, usage)
            raise
        score = verdict.score
        if score is None:
            return self.skipped(verdict.reasoning, usage=usage, fingerprint=self.fingerprint)
        value, passed = self.config.scored(score)
        turns = None
        extra = dict(verdict.extra)
        if self.scope != "conversation":
            turns = tuple(self._turn(one, asked.piece) for one, asked in zip(verdicts, questions, strict=True))
        elif len(verdicts) > 1:
            extra["pieces"] = [_piece(one, asked.piece) for one, asked in zip(verdicts, questions, strict=True)]
        prompt = partial(_words, [asked.request for asked in questions])
        return MetricResult.model_construct(
            name=self.name,
            state="scored",
            value=value,
            raw=score,
            passed=passed,
            confidence=verdict.confidence,
            reason=verdict.reasoning,
            findings=tuple(verdict.findings),
            other_evidence=tuple(verdict.evidence),
            turns=turns,
            extra=extra,
            usage=usage,
            fingerprint=self._fingerprint_of(given),
            settings=self.asked_with,
            about=About(self.config.score_type, len(given.messages), given.goal, prompt=prompt),
        )

    @property
    def asked_with(self) -> dict[str, Any]:
        """The model and the settings that the judge is asked with."""
        return {"model": self.judge and self.judge.name, **self.settings}

    def _turn(self, verdict: Verdict, piece: Piece) -> Score:
        """Return the score of the last turn of a piece."""
        turn = piece.last - 1
        if verdict.score is None:
            return Score(name=self.name, turn=turn, state="skipped", reason=verdict.reasoning)
        value, passed = self.config.scored(verdict.score)
        return Score.model_construct(
            name=self.name,
            turn=turn,
            state="scored",
            value=value,
            raw=verdict.score,
            passed=passed,
            reason=verdict.reasoning,
            confidence=verdict.confidence,
            findings=tuple(verdict.findings),
            other_evidence=tuple(verdict.evidence),
        )

    def _fingerprint_of(self, given: MultiTurnEvaluationInput) -> str:
        return f"{self.fingerprint}-growing" if given.growing else self.fingerprint

    @property
    def fingerprint(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        """A hash of everything that decides the scores: the metric and its version, its prompt, the model, settings."""
        judge = self.judge_identity
        if judge not in self._fingerprints:
            self._fingerprints[judge] = self._fingerprint_with(judge)
        return self._fingerprints[judge]

    def _fingerprint_with(self, judge: str | None) -> str:
        decided = [type(self).__name__, self.version, self.prompt.hash, judge_hash(), judge]
        options = [self.scope, self.window, repr(self.shown), self.tokens, self.overlap, dict(self.settings)]
        options.append(source_of(type(self)))
        spelled = json.dumps([*decided, *options, self.config.model_dump(mode="json"), self.parameters], default=str)
        return hashlib.blake2b(spelled.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()

    @property
    def parameters(self) -> Mapping[str, object]:
        """What of the metric's own decides its scores, besides its configuration."""
        return {}

    def _values(self, given: MultiTurnEvaluationInput) -> dict[str, object]:
        return {
            "goal": given.goal,
            "instructions": given.instructions,
            "context": _early(given) if given.growing else given.context,
            "reference": given.reference,
            "must": given.must,
            "must_not": given.must_not,
            "so_far": (),
        }

    def _request(
        self,
        given: MultiTurnEvaluationInput,
        written: Transcript,
        piece: Piece,
        values: Mapping[str, object],
        shape: type[BaseModel],
    ) -> Request:
        whole = self.scope == "conversation" and len(written.turns) == piece.last - piece.first == piece.judged
        task = self.prompt.render({**values, "focus": None if whole else _focus(piece)}).rstrip()
        said = written.text(piece.first, piece.last)
        words = f"{task}\n\n{said}{_late(given)}" if given.growing else f"{said}\n{task}"
        asked = HumanMessage(content=words)
        return Request([_judge(), asked], schema=shape, settings=self.settings, trial=self.trial)

    def _verdict(self, reply: ModelReply, asked: Asked) -> Verdict:
        if reply.parsed is None:
            raise ModelFault("the judge gave no verdict", kind="format", evidence=shorten(reply.text))
        try:
            return self.read(reply.parsed, asked)
        except ValueError as error:
            said = _complaint(error) if isinstance(error, ValidationError) else str(error)
            raise ModelFault(
                f"the judge's verdict is not one: {said}", kind="format", evidence=shorten(reply.text)
            ) from error


def answered(written: Transcript, piece: Piece) -> list[int | None]:
    """Return the judged turns in which the assistant says or does something, None for what precedes the first."""
    first = piece.last - piece.judged
    judged = range(first, piece.last) if first else (None, *range(piece.last))
    return [turn for turn in judged if turn in written.answered]


def merged(
    score: float | str | None, verdicts: Sequence[Verdict], findings: Sequence[Finding] | None = None, **extra: object
) -> Verdict:
    """Return the verdict with that score whose reasons are those of all pieces, and its findings theirs."""
    sure = [verdict.confidence for verdict in verdicts if verdict.confidence is not None]
    return Verdict(
        score,
        "\n".join(verdict.reasoning for verdict in verdicts),
        min(sure) if sure else None,
        [one for verdict in verdicts for one in verdict.findings] if findings is None else findings,
        list(dict.fromkeys(one for verdict in verdicts for one in verdict.evidence)),
        extra,
        sum(verdict.turns for verdict in verdicts),
    )


@cache
def _judge() -> SystemMessage:
    return SystemMessage(content=(HERE / "judge.txt").read_text(encoding="utf-8").rstrip("\n"))


@cache
def judge_hash() -> str:
    """Return a hash of what every judge is told."""
    return hashlib.blake2b(_judge().text.encode(), digest_size=8).hexdigest()


def _focus(piece: Piece) -> Wording:
    """Return which turns are judged, in words."""
    return Wording(turn_span(range(piece.last - piece.judged, piece.last)))


def _piece(verdict: Verdict, piece: Piece) -> dict[str, Any]:
    place = {"first_turn": piece.last - piece.judged, "last_turn": piece.last - 1}
    return {**place, "score": verdict.score, "reasoning": verdict.reasoning}


def _early(given: MultiTurnEvaluationInput) -> dict[str, Any] | None:
    """Return the context without what changes while a conversation grows."""
    return {name: value for name, value in (given.context or {}).items() if name != ANALYSIS} or None


def _late(given: MultiTurnEvaluationInput) -> str:
    found = (given.context or {}).get(ANALYSIS)
    return f"\nFound by analysis: {quoted(found)}" if found else ""


def _words(requests: Sequence[Request]) -> str:
    return "\n\n".join(message.text for request in requests for message in request.messages)


def _renamed(config: MetricConfig, options: JudgingOptions) -> MetricConfig:
    told = {name: options.get(name) for name in ("name", "threshold") if name in options}
    return config.model_copy(update=told) if told else config


def _complaint(error: ValidationError) -> str:
    first = error.errors(include_url=False)[0]
    return f"{'.'.join(map(str, first['loc']))}: {first['msg']}, got {first['input']!r}"[:300]
