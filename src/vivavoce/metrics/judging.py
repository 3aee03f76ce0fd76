"""`JudgedMetric`: asks a model about a conversation, checks the answer, and computes the score from it in code."""

from __future__ import annotations

import hashlib
import json
import sys
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any, ClassVar, Unpack

from pydantic import BaseModel, ValidationError
from typing_extensions import TypedDict

from vivavoce.comparing.thresholds import mean
from vivavoce.errors import ModelFault, SuiteFault, UsageError
from vivavoce.messages import HumanMessage, SystemMessage
from vivavoce.metrics.config import Manner, MetricConfig, Scope, read_options
from vivavoce.metrics.evidence import (
    Checker,
    Claim,
    EvidenceRule,
    claim_of,
    doubt_request,
    repair_request,
    unsupported_findings,
)
from vivavoce.metrics.metric import SILENT, StepwiseMetric
from vivavoce.metrics.prompts import HERE, Prompt, Wording, read_prompt
from vivavoce.metrics.question import Answer, Ask, Piece, Plan, Question, Verdict, cut, merged
from vivavoce.metrics.result import About, MetricResult
from vivavoce.metrics.transcript import EVERYTHING, Shown, Transcript, acts, named
from vivavoce.metrics.types import MultiTurnEvaluationInput, Reading
from vivavoce.models.custom import ModelLike
from vivavoce.models.model import Model, Request, Subject, identity_of
from vivavoce.models.names import DefaultJudge
from vivavoce.records.score import UNSUPPORTED, Finding, Score, charge, shorten, total, turn_span
from vivavoce.user_code import source_of
from vivavoce.validation import construct, copy_with

MAX_WINDOW_TURNS = 10_000
"""Turns of a window."""

MAX_PIECE_TOKENS = 10_000_000
"""Tokens of a conversation that one judgment may see: more than any model reads at once."""

UNCUT_TOKENS = sys.maxsize
"""The `tokens` of a metric that never cuts a conversation into pieces."""

MAX_QUESTION_CHARS = 100_000_000
"""Characters of all questions of one metric about one conversation, which repeat what they share."""

GIVEN = frozenset(("goal", "instructions", "context", "reference", "must", "must_not", "focus"))
"""What every prompt may ask for: the fields of the input, and the turns that are judged."""


class JudgingOptions(TypedDict, total=False):
    """What every judged metric takes besides its own: how it asks, and about what part of a conversation."""

    name: str
    """What its results are called."""
    threshold: float | None
    """The score, in the metric's own terms, from which it passes."""
    scope: Scope
    """What one question is about: the conversation, or each turn or window of it."""
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


class JudgedMetric(StepwiseMetric):
    """A metric that asks a model.

    A subclass names the file of its `template`, the `variables` of its own in it, the class that the answer must match
    (`reply`), and how a verdict is read from an answer (`read`). The model is asked once for each piece of the
    conversation; without a model, or without what is listed in `needs`, the metric is skipped and says why.
    """

    judged = True
    takes_settings = True
    template: ClassVar[str]
    version: ClassVar[str] = "4"
    needs: ClassVar[tuple[str, ...]] = ()
    of_assistant: ClassVar[bool] = False
    """Whether only what the assistant says and does is judged, so that without any of it there is nothing to judge."""
    of_user: ClassVar[bool] = False
    """Whether only what the user says is judged."""
    calls_per_question = 1
    """How many calls one question takes, where each of them is answered."""
    own_variables: ClassVar[frozenset[str]] = frozenset()
    """The variables of the prompt that this metric fills itself."""
    evidence_rule: ClassVar[EvidenceRule]
    """Which claims of the judge need evidence."""
    reply: type[BaseModel]
    """The class that an answer must match, unless `question` says otherwise."""
    nothing: ClassVar[str] = "nothing in this conversation is what this metric judges"
    """Why the metric is skipped where the conversation holds nothing that it judges."""

    def __init__(self, config: MetricConfig, model: ModelLike | None = None, **options: Unpack[JudgingOptions]) -> None:
        options = read_options(JudgingOptions, _chosen(options))
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
            raise UsageError(f"{self.name}: window must be at least 1 turn, tokens at least 1, overlap at least 0")
        if self.window > MAX_WINDOW_TURNS:
            raise UsageError(f"{self.name}: 'window' is {self.window:,} turns, at most {MAX_WINDOW_TURNS:,} allowed")
        if MAX_PIECE_TOKENS < self.tokens != UNCUT_TOKENS:
            raise UsageError(f"{self.name}: 'tokens' is {self.tokens:,}, at most {MAX_PIECE_TOKENS:,} allowed")
        self.prompt: Prompt = read_prompt(
            self.template, GIVEN | self.own_variables, options.get("prompt"), options.get("blocks", {})
        )

    @abstractmethod
    def read(self, reply: Any, question: Question) -> Verdict:
        """Return the verdict that an answer comes to; `reply` is an instance of the class that was asked for.

        Raises:
            ValueError: the answer contradicts itself.
        """

    def variables(self, metric_input: MultiTurnEvaluationInput) -> Mapping[str, object]:
        """Return the values of the prompt's own variables."""
        del metric_input
        return {}

    def question(
        self, metric_input: MultiTurnEvaluationInput, written: Transcript, piece: Piece
    ) -> tuple[type[BaseModel], Mapping[str, object]] | None:
        """Return the class of an answer about a piece, and the prompt's own variables; None for nothing to judge."""
        if self.of_assistant and not answered(written, piece):
            return None
        return self.reply, self.variables(metric_input)

    def inapplicable(self, metric_input: MultiTurnEvaluationInput) -> str | None:
        """Say why this conversation cannot be judged, None when it can."""
        if missing := self.unmet(metric_input):
            return missing
        messages = metric_input.messages
        roles = {message.role for message in messages}
        if roles.isdisjoint(("user", "assistant")):
            return "nobody says anything in this conversation" if messages else "the conversation is empty"
        if self.of_assistant and not any(map(acts, messages)):
            return SILENT
        if self.of_user and "user" not in roles:
            return "the user says nothing in this conversation"
        return None

    def unmet(self, metric_input: MultiTurnEvaluationInput) -> str | None:
        """Say which `needs` are missing."""
        for name in self.needs:
            if not getattr(metric_input, name):
                return f"needs a {name}, and none is given"
        return None

    def merge(self, verdicts: Sequence[Verdict]) -> Verdict:
        """Combine the verdicts about the pieces of a conversation: their mean, weighted by their turns."""
        scored = [(float(verdict.score), verdict.turns) for verdict in verdicts if verdict.score is not None]
        scores, turns = [score for score, _ in scored], [turns for _, turns in scored]
        return merged(float(mean(scores, turns)) if any(turns) else None, verdicts)

    def claims(self, verdict: Verdict) -> list[Claim]:
        """Return a verdict's claims that need evidence, besides its findings."""
        del verdict
        return []

    def passes(self, verdict: Verdict, findings: Sequence[Finding]) -> bool | None:
        """Return whether a verdict would pass with other findings, None where there would be none.

        By default a metric passes only with all its findings as they are.
        """
        unchanged = [finding.state for finding in findings] == [finding.state for finding in verdict.findings]
        return unchanged and verdict.score is not None and self.config.passes(verdict.score) is not False

    def conclude(self, verdict: Verdict, checker: Checker) -> Verdict:
        """Return the verdict on the whole conversation, after its evidence has been checked."""
        del checker
        return verdict

    def _with_findings_checked(self, verdict: Verdict, checker: Checker) -> Verdict:
        """Return the verdict on the whole conversation; `extra` names claims without evidence that do not decide it.

        Raises:
            ModelFault: the verdict depends on a claim without valid evidence.
        """
        doubtful = unsupported_findings(verdict.findings, self.evidence_rule, checker)
        if not doubtful:
            return verdict
        worst = [
            copy_with(finding, {"state": "fail"}) if finding in doubtful else finding for finding in verdict.findings
        ]
        best = [
            copy_with(finding, {"state": "pass"}) if finding in doubtful and finding.state == "fail" else finding
            for finding in verdict.findings
        ]
        if self.passes(verdict, worst) != self.passes(verdict, best):
            claim = claim_of(doubtful[0], self.evidence_rule)
            assert claim is not None
            raise claim.fault(checker, verdict.reasoning)
        return with_unsupported(verdict, [one.what for one in doubtful])

    def again(self, answer: Answer) -> Question | None:
        """Return the question again, None if the answer is accepted.

        It is asked again if it claims something without evidence, or if there are `doubts` about it.
        """
        question, checker = answer.question, answer.question.checker
        try:
            verdict = self.vote(answer)
        except ModelFault:  # whoever reads the answer next reports it
            return None
        claims = [claim for finding in verdict.findings if (claim := claim_of(finding, self.evidence_rule)) is not None]
        claims += self.claims(verdict)
        if unsupported := [claim for claim in claims if not claim.is_supported(checker)]:
            return question.repaired(answer.reply, repair_request(unsupported, checker))
        answer.is_supported = True
        doubts = self.doubts(verdict, question)
        return question.repaired(answer.reply, doubt_request(doubts)) if doubts else None

    def doubts(self, verdict: Verdict, question: Question) -> Sequence[str]:
        """Return what a judge is asked to look at once more, as questions; it may give the same answer again."""
        del verdict, question
        return ()

    def is_doubted(self, answer: Answer) -> bool:
        """Return whether there are doubts about an answer that can be read."""
        try:
            return bool(self.doubts(self.vote(answer), answer.question))
        except ModelFault:  # whoever reads the answer next reports it
            return False

    def vote(self, answer: Answer) -> Verdict:
        """Return the result of a single answer, also if several are read together.

        Raises:
            ModelFault: it does not match the requested shape.
        """
        return self.verdict(answer)

    def unasked(self, metric_input: MultiTurnEvaluationInput) -> MetricResult:
        """Return the result for a conversation that needs no question."""
        del metric_input
        return self.skipped(self.nothing, fingerprint=self.fingerprint)

    def steps_for(self, reading: Reading) -> Plan[MetricResult]:
        """Yield the questions to the judge, and return the result of its answers."""
        if reason := self.inapplicable(reading.metric_input):
            return self.skipped(reason)
        judge = self.judge
        if judge is None:
            return self.skipped("needs a judge: give a model, or set VIVAVOCE_JUDGE")
        answers = yield from self.answers(reading, self.questions(reading), judge)
        return self.result(reading.metric_input, answers)

    def answers(self, reading: Reading, questions: Sequence[Question], judge: Model) -> Plan[Sequence[Answer]]:
        """Yield the questions about a conversation, and return the answers; one without evidence is asked for again.

        The caller may give other answers too, such as those about earlier turns.
        """
        del reading
        return (yield Ask(judge, questions, self.again))

    def about_agents(self, metric_input: MultiTurnEvaluationInput) -> str:
        """Return what a judge of a multi-agent conversation has to know besides who acts, in whole lines."""
        del metric_input
        return ""

    def _on_agents(self, metric_input: MultiTurnEvaluationInput, written: Transcript) -> str:
        """Return what is said of several agents below the task; nothing where there is one."""
        if len(written.agents) < 2:
            return ""
        names = ", ".join(map(named, written.agents))
        told = f"Several agents act as the assistant, and are judged together: {names}."
        return f"\n{told} After a line handoff the second one acts.{self.about_agents(metric_input)}"

    @property
    def manner(self) -> Manner:
        """How it asks a model."""
        what = (self.shown, self.scope, self.window, self.tokens, self.overlap)
        return Manner(*what, self.settings, self.trial, self.calls_per_question)

    def planned_calls(self, reading: Reading) -> int:
        """Return how many calls it makes at most for a conversation."""
        if self.inapplicable(reading.metric_input) or self.judge is None:
            return 0
        pieces = self._pieces(reading.transcript(self.shown), reading.since)
        return len(pieces) * self.calls_per_question

    @property
    def judge(self) -> Model | None:
        """The model that is asked: the metric's own, or else the one that VIVAVOCE_JUDGE names when it is asked."""
        return self._default.model if self.model is None else self.model

    @property
    def judge_identity(self) -> str | None:
        """The identity of the model that is asked, None if there is none."""
        return self._default.identity if self.model is None else identity_of(self.model)

    async def close(self) -> None:
        """Close the connections of the judge; a later question opens new ones."""
        await super().close()
        await self._default.close()

    def questions(self, reading: Reading) -> list[Question]:
        """Return what the judge is asked about a conversation, for each piece of it with something to judge.

        Raises:
            SuiteFault: the questions are too long in all.
        """
        metric_input = reading.metric_input
        written, checker = reading.transcript(self.shown), reading.checker(self.shown)
        values = self._values(metric_input)
        asked: list[Question] = []
        chars = 0
        for piece in self._pieces(written, reading.since):
            if question := self.question(metric_input, written, piece):
                shape, own = question
                task = self._task(written, piece, {**values, **own}) + self._on_agents(metric_input, written)
                request = self._request(metric_input, written, piece, task, shape)
                chars += len(request.messages[-1].text)
                if chars > MAX_QUESTION_CHARS:
                    raise SuiteFault(
                        f"the questions of {self.name} about this conversation have more than {MAX_QUESTION_CHARS:,} "
                        "characters in all; choose another 'scope', or a smaller 'window' or 'tokens'",
                        kind="limit",
                    )
                seen = checker if self.scope == "conversation" else checker.up_to(piece.last)
                asked.append(Question(request, task, metric_input, seen, piece))
        return asked

    def _pieces(self, written: Transcript, since: int) -> list[Piece]:
        return cut(written, self.scope, self.window, self.tokens, self.overlap, since)

    def result(self, metric_input: MultiTurnEvaluationInput, answers: Sequence[Answer]) -> MetricResult:
        """Return the result of the judge's answers.

        Raises:
            ModelFault: one of them does not match the requested shape.
        """
        if not answers:
            return self.unasked(metric_input)
        usage = total(answer.usage for answer in answers)
        try:
            verdicts = [self.verdict(answer) for answer in answers]
            if len(answers) == 1:
                checker, verdict = answers[0].question.checker, verdicts[0]
            else:
                checker = max((answer.question for answer in answers), key=lambda one: one.piece.last).checker
                verdict = self.merge(verdicts)
            if len(answers) > 1 or not answers[0].is_supported:
                verdict = self._with_claims_checked(verdict, verdicts, checker)
                verdict = self._with_findings_checked(verdict, checker)
            verdict = self.conclude(verdict, checker)
            if invented := invented_claims(verdict, self.name):
                verdict = with_unsupported(verdict, invented)
        except Exception as error:
            charge(error, usage)
            raise
        score = verdict.score
        if score is None:
            findings = tuple(verdict.findings)
            return self.skipped(verdict.reasoning, findings=findings, usage=usage, fingerprint=self.fingerprint)
        value, passed = self.config.scored(score)
        turns = None
        extra = dict(verdict.extra)
        questions = [answer.question for answer in answers]
        if self.scope != "conversation":
            turns = tuple(self._turn(one, asked.piece) for one, asked in zip(verdicts, questions, strict=True))
        elif len(verdicts) > 1:
            extra["pieces"] = [_piece(one, asked.piece) for one, asked in zip(verdicts, questions, strict=True)]
        prompt = partial(_words, [asked.request for asked in questions])
        fields = {
            "name": self.name,
            "state": "scored",
            "value": value,
            "raw": score,
            "passed": passed,
            "confidence": verdict.confidence,
            "reason": verdict.reasoning,
            "findings": tuple(verdict.findings),
            "other_evidence": tuple(verdict.evidence),
            "turns": turns,
            "extra": extra,
            "usage": usage,
            "fingerprint": self.fingerprint,
            "settings": self.asked_with,
            "about": About(self.config.score_type, len(metric_input.messages), metric_input.goal, prompt=prompt),
        }
        return construct(MetricResult, fields)

    def _with_claims_checked(self, verdict: Verdict, verdicts: Sequence[Verdict], checker: Checker) -> Verdict:
        """Return the verdict of all pieces; `extra` names claims of the pieces that have no evidence.

        Raises:
            ModelFault: the verdict depends on one of them.
        """
        claims = [claim for one in verdicts for claim in self.claims(one) if not claim.is_supported(checker)]
        if not claims:
            return verdict
        fails = verdict.score is not None and self.config.passes(verdict.score) is False
        if self.scope != "conversation" or not fails or self.config.direction == "lower_is_better":
            raise claims[0].fault(checker, verdict.reasoning)
        return with_unsupported(verdict, [claim.what for claim in claims])

    @property
    def asked_with(self) -> dict[str, Any]:
        """The model and the settings that the judge is asked with."""
        judge = self.judge
        return {"model": judge and judge.name, **self.settings}

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
        options += self.evidence_options
        spelled = json.dumps([*decided, *options, self.config.model_dump(mode="json"), self.parameters], default=str)
        return hashlib.blake2b(spelled.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()

    @property
    def evidence_options(self) -> Sequence[str]:
        """The options that change which claims need evidence, none unless they are chosen."""
        return ()

    @property
    def parameters(self) -> Mapping[str, object]:
        """The settings that decide its scores, besides its configuration."""
        return {}

    def _values(self, metric_input: MultiTurnEvaluationInput) -> dict[str, object]:
        return {
            "goal": metric_input.goal,
            "instructions": metric_input.instructions,
            "context": metric_input.context,
            "reference": metric_input.reference,
            "must": metric_input.must,
            "must_not": metric_input.must_not,
        }

    def _task(self, written: Transcript, piece: Piece, values: Mapping[str, object]) -> str:
        whole = self.scope == "conversation" and len(written.turns) == piece.last - piece.first == piece.judged
        return self.prompt.render({**values, "focus": None if whole else _focus(piece)}).rstrip()

    def _request(
        self,
        metric_input: MultiTurnEvaluationInput,
        written: Transcript,
        piece: Piece,
        task: str,
        shape: type[BaseModel],
    ) -> Request:
        words = f"{written.text(piece.first, piece.last)}\n{task}"
        asked = construct(HumanMessage, {"role": "user", "content": words})
        subject = Subject(self.name, piece.last - piece.judged, piece.last - 1)
        request = Request([_judge(), asked], schema=shape, settings=self.settings, trial=self.trial, subject=subject)
        return replace(request, sample_trial=metric_input.trial) if metric_input.trial else request

    def verdict(self, answer: Answer) -> Verdict:
        """Return the result of an answer; it is read once.

        Raises:
            ModelFault: it does not match the requested shape.
        """
        if answer.verdict is None:
            answer.verdict = self.read_with(answer, self.read)
        return answer.verdict

    def read_with(self, answer: Answer, read: Callable[[Any, Question], Verdict]) -> Verdict:
        """Return what a function reads from an answer.

        Raises:
            ModelFault: the answer does not match the requested shape.
        """
        reply = answer.reply
        if reply.parsed is None:
            raise ModelFault("the judge gave no verdict", kind="format", evidence=shorten(reply.text))
        try:
            return read(answer.question.reply_of(reply), answer.question)
        except ValueError as error:
            said = _complaint(error) if isinstance(error, ValidationError) else str(error)
            raise ModelFault(
                f"the judge's answer cannot be used: {said}", kind="format", evidence=shorten(reply.text)
            ) from error


def with_unsupported(verdict: Verdict, claims: Sequence[str]) -> Verdict:
    """Return a verdict that names claims without evidence that counts."""
    named = dict.fromkeys((*verdict.extra.get(UNSUPPORTED, ()), *claims))
    return replace(verdict, extra={**verdict.extra, UNSUPPORTED: list(named)})


def invented_claims(verdict: Verdict, name: str) -> list[str]:
    """Return what a verdict claims on quotes of which none is in the conversation; `name` is that of the whole."""
    invented: list[str] = []
    for what, quotes in (*((one.what, one.evidence) for one in verdict.findings), (name, verdict.evidence)):
        if quotes and True not in {quote.verified for quote in quotes}:
            invented.append(what)
    return invented


def answered(written: Transcript, piece: Piece) -> list[int | None]:
    """Return the judged turns in which the assistant says or does something, None for what precedes the first."""
    first = piece.last - piece.judged
    judged = range(first, piece.last) if first else (None, *range(piece.last))
    return [turn for turn in judged if turn in written.answered]


@cache
def _judge() -> SystemMessage:
    return SystemMessage(content=(HERE / "judge.txt").read_text(encoding="utf-8").rstrip("\n"))


@cache
def judge_hash() -> str:
    """Return a hash of what every prompt says."""
    return hashlib.blake2b(_judge().text.encode(), digest_size=8).hexdigest()


def _focus(piece: Piece) -> Wording:
    """Return which turns are judged, in words."""
    return Wording(turn_span(range(piece.last - piece.judged, piece.last)))


def _piece(verdict: Verdict, piece: Piece) -> dict[str, Any]:
    place = {"first_turn": piece.last - piece.judged, "last_turn": piece.last - 1}
    return {**place, "score": verdict.score, "reasoning": verdict.reasoning}


def _words(requests: Sequence[Request]) -> str:
    return "\n\n".join(message.text for request in requests for message in request.messages)


def _renamed(config: MetricConfig, options: JudgingOptions) -> MetricConfig:
    told = {name: options.get(name) for name in ("name", "threshold") if name in options}
    return config.model_copy(update=told) if told else config


def _chosen(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return options without those that are None and so as not given; None for a threshold says that there is none."""
    return {name: value for name, value in options.items() if value is not None or name == "threshold"}


def _complaint(error: ValidationError) -> str:
    first = error.errors(include_url=False)[0]
    rule = first["msg"].removeprefix("Value error, ")
    if not first["loc"]:  # a rule about the whole answer, which stands beside the complaint
        return rule[:300]
    return f"{'.'.join(map(str, first['loc']))}: {rule}, got {first['input']!r}"[:300]
