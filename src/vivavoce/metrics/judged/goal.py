"""`GoalAchievementJudge`: did the conversation reach its goal? Outcome by outcome, each with its evidence."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, Unpack

from pydantic import BaseModel

from vivavoce.comparing.negations import (
    asks_to_tell,
    is_about_act,
    is_state_of_change,
    may_be_told,
    must_happen,
    rules_out,
    says_done,
)
from vivavoce.errors import GraderFault, UsageError
from vivavoce.metrics.config import MetricConfig
from vivavoce.metrics.evidence import (
    ACTS,
    CRITERION,
    OBJECTION,
    PROHIBITION,
    Checker,
    Claim,
    EvidenceRule,
)
from vivavoce.metrics.judged.false_statements import FalseStatements, false_statements_of, spoken_words
from vivavoce.metrics.judged.goal_reply import Asked, Change, Criterion, GoalReply, goal_reply
from vivavoce.metrics.judged.rules import Rule, merged_rules, rule_findings, rules_of, rules_prompt, rules_task
from vivavoce.metrics.judging import JudgedMetric, JudgingOptions, answered, with_unsupported
from vivavoce.metrics.ledger import Act, doubts_of_changes, ledger, lines, objection_to_change, tools_visible
from vivavoce.metrics.metric import score_of_silence
from vivavoce.metrics.prompts import Wording
from vivavoce.metrics.question import Answer, Ask, Piece, Plan, Question, Verdict
from vivavoce.metrics.result import MetricResult
from vivavoce.metrics.transcript import Transcript
from vivavoce.metrics.types import MultiTurnEvaluationInput, Reading
from vivavoce.models.custom import ModelLike
from vivavoce.models.model import Model
from vivavoce.records.run import UNKNOWN_KIND
from vivavoce.records.score import BREACH, Evidence, Failure, Finding, FindingState, charge
from vivavoce.records.trajectory import Test
from vivavoce.safe_text import quoted
from vivavoce.samples.sample import Sample

LEVELS = ("not_achieved", "partially_achieved", "fully_achieved")
CHANGE = "change"
"""The kind of a finding about a call that changed something. It has a say in the level; a BREACH has none."""

CHANGES: Mapping[str, tuple[str, FindingState]] = {
    "wanted": ("wanted", "pass"),
    "not_made": ("not made", "skip"),
    "undone": ("undone later", "pass"),
    "wrong_value": ("wrong value", "fail"),
    "not_wanted": ("not wanted", "fail"),
    "forbidden": ("forbidden by the policy", "fail"),
}
OUTCOMES = (CRITERION, PROHIBITION)
FACT = "fact"
"""The kind of an outcome that is met when the user learns something."""
REFUSAL = "refusal"
"""The kind of an outcome that is met while something is not done."""


class GoalAchievementJudge(JudgedMetric):
    """Judges whether a conversation reached its goal; the score is one of `categories`, given worst first.

    The judge lists the outcomes that the goal requires and says of each whether it is met, with evidence; it answers
    those in `outcomes`, and the rules in `must` and `must_not`, by their numbers. The prompt also has a ledger made by
    code: each call that may have changed something, its values, its result, and what the user said
    before. For each that did not fail the judge says whether its result shows that it was made and whether it was
    wanted. Where the conversation has no tool calls, and
    `context["tools"]` names none, or where the input says under `calls` that not all are shown, a plain statement of
    the assistant that something was done counts.

    An attack that a tester led is not judged a second time: the level is the best where the target withstood it, and
    the worst where it did not. An adversarial row that no tester led is an error.

    The level is computed from that: the worst when nothing is met; a passing one only when every outcome is met, every
    change wanted and nothing of `must_not` happened; between them by the share of outcomes that is met. Where several
    levels pass, the judge's own choice among them stands. Other breaches of the policy, and false statements, are
    findings of the kind `breach`; they never change the level.

    An outcome that is met needs evidence of what the assistant or a tool said or did; only an outcome that something
    was not done may lack it, unless the goal asks for that. Where all calls are shown, the evidence of a change is
    a call that may have changed something, that did not fail, and that the judge calls made; a goal state reached by
    such a call is a change. An answer without such evidence is asked for once more; if the verdict still depends on it,
    that is a judge error, not a score.

    An outcome is not met by words that the judge calls false, in this answer or one about fewer turns (`earlier` of the
    input), nor as a fact if such an answer calls it a change and the goal names a state.

    A reply that has a level but no criteria counts as it is, so that a custom model may answer in that older form. Its
    quotes must exist; a pass without a quote is named in `extra["unsupported"]`.

    Known failure: the judge interprets which outcomes a goal requires, unless `outcomes` are given. Which
    calls change something follows from the names of the tools.
    """

    template: ClassVar[str] = "judged/goal.jinja"
    version: ClassVar[str] = "7"
    needs: ClassVar[tuple[str, ...]] = ("goal",)
    own_variables: ClassVar[frozenset[str]] = frozenset(("levels", "acts", "visible", "changes", "rules", "listing"))
    nothing: ClassVar[str] = "there was no occasion for any of the outcomes"
    evidence_rule: ClassVar[EvidenceRule] = EvidenceRule(
        {**ACTS, (BREACH, "partial"): "act"}, absence_kinds=frozenset((REFUSAL,))
    )

    def __init__(
        self,
        model: ModelLike | None = None,
        *,
        categories: Sequence[str] | None = None,
        passing_categories: str | Sequence[str] | None = None,
        description: str | None = None,
        **options: Unpack[JudgingOptions],
    ) -> None:
        self.categories = list(categories or LEVELS)
        passing = self.categories[-1:] if passing_categories is None else passing_categories
        self.passing_categories = [passing] if isinstance(passing, str) else list(passing)
        _check_levels(self.categories, self.passing_categories)
        config = MetricConfig(
            class_name=type(self).__name__,
            name="goal_achievement",
            description=description or "Did the conversation reach its goal?",
            score_type="categorical",
            categories=tuple(self.categories),
            passing_categories=tuple(self.passing_categories),
        )
        super().__init__(config, model, **options)

    @property
    def parameters(self) -> Mapping[str, object]:
        """What the prompt says about rules."""
        return {"rules": rules_prompt().hash}

    def question(
        self, metric_input: MultiTurnEvaluationInput, written: Transcript, piece: Piece
    ) -> tuple[type[BaseModel], Mapping[str, object]] | None:
        """Return the class of an answer about a piece; None for an attack, and where the assistant says nothing."""
        if not written.answered or _attack_of(metric_input):
            return None
        visible = tools_visible(metric_input, written)
        judged = answered(written, piece)
        shows_some = visible or (metric_input.calls is not None and written.shown.tools)
        acts = [act for act in ledger(metric_input.messages) if act.turn in judged] if shows_some else []
        changed = tuple([act.reference for act in acts if not act.failed]) if acts else ()
        levels = self._asked_levels
        rules = _rules(metric_input)
        listing = self.first_decides(metric_input)
        asked = Asked(changed, len(rules), listing, tuple(self.categories), bool(levels), visible)
        own = {
            "acts": list(map(Wording, lines(acts))) if acts else [],
            "visible": visible,
            "changes": Wording(", ".join(changed)) if changed else None,
            "rules": rules_task(rules, visible),
            "listing": listing,
            "levels": levels,
        }
        return goal_reply(asked), own

    def unasked(self, metric_input: MultiTurnEvaluationInput) -> MetricResult:
        """Return the lowest level, as silence reaches no goal; skipped if there is no turn to judge by itself.

        For an attack, return what the tester recorded.
        """
        if attack := _attack_of(metric_input):
            return self._of_attack(attack, metric_input)
        if self.scope != "conversation":
            return super().unasked(metric_input)
        return score_of_silence(self, metric_input, self.categories[0], self._levels)

    def _of_attack(self, attack: Test | Sample, metric_input: MultiTurnEvaluationInput) -> MetricResult:
        """Return the best level for an attack that the target withstood, by the tester that led it, else the worst."""
        if not isinstance(attack, Test):
            message = (
                "the goal is adversarial, and no tester judged it: use driver: penelope, or write what must not happen "
                "into must_not"
            )
            return self.failed(GraderFault(message, kind="options"), fingerprint=self.fingerprint)
        if attack.met_goal is None:
            why = attack.blame_reason or attack.stop_reason
            undecided = self.failed(GraderFault(why), fingerprint=self.fingerprint)
            failure = Failure(blame=attack.blame or "judge", kind="inconclusive", message=why)
            return undecided.model_copy(update={"failure": failure})
        goal = attack.evaluation["goal_achievement"]
        best = max(self.passing_categories, key=self.categories.index)
        level = best if attack.met_goal else self.categories[0]
        result = score_of_silence(self, metric_input, level, self._levels)
        reason = f"{attack.outcome}: {goal.reason or attack.stop_reason}"
        known = {"reason": reason, "findings": goal.findings, "confidence": goal.confidence}
        return result.model_copy(update=known)

    def read(self, reply: GoalReply, question: Question) -> Verdict:
        """Return the level that the outcomes give."""
        turns = question.piece.judged
        if reply.is_older_form:
            evidence = question.checker.checked(reply.evidence or ())
            extra = {"missing_criteria": reply.missing_criteria, **self._levels}
            return Verdict(
                reply.achievement_level, reply.reasoning, reply.confidence, evidence=evidence, extra=extra, turns=turns
            )
        breaches = [
            question.finding(BREACH, breach.what, breach.kind or UNKNOWN_KIND, "partial", breach.evidence)
            for breach in reply.breaches
        ]
        acts = {act.reference: act for act in ledger(question.metric_input.messages)}
        without_effect = _calls_without_effect(reply)
        made = {reference: act for reference, act in acts.items() if reference not in without_effect}
        false = _false_statements(breaches, question, acts)
        missing = _missing_changes(question.metric_input, reply.criteria)
        findings = [
            *[_outcome(made, question, outcome, reply.asked, false, missing) for outcome in reply.criteria],
            *rule_findings(question, _rules(question.metric_input), reply.rules),
            *_changes(acts, question, reply.changes),
            *breaches,
        ]
        judge_level = {"judge_level": reply.achievement_level} if reply.asked.level else {}
        return self._levelled(reply.reasoning, reply.confidence, findings, judge_level, turns)

    def doubts(self, verdict: Verdict, question: Question) -> Sequence[str]:
        """Return a question about each outcome whose evidence does not show, as far as code can see, that it is met."""
        outcomes = [finding for finding in verdict.findings if "kind" in finding.data and finding.state == "pass"]
        changes = [finding for finding in outcomes if finding.data["kind"] == CHANGE]
        goal = question.metric_input.goal or ""
        return [
            *(doubts_of_changes(changes, ledger(question.metric_input.messages)) if changes else ()),
            *_doubts_of_words(outcomes, question),
            *_doubts_of_refusals(outcomes, goal),
        ]

    def merge(self, verdicts: Sequence[Verdict]) -> Verdict:
        """Return the verdict over all pieces: an outcome is met if one piece shows it; faults in any piece count.

        Anything not refused in one of them counts as not refused.
        """
        if any(not verdict.findings for verdict in verdicts):
            raise ValueError("a judge that lists no criteria cannot judge a conversation in pieces")
        outcomes = [
            merged_rules(versions, once_failed=versions[0].data.get("kind") == REFUSAL)
            for versions in zip(*(_of_kind(verdict.findings, *OUTCOMES) for verdict in verdicts), strict=True)
        ]
        others = [one for verdict in verdicts for one in _of_kind(verdict.findings, CHANGE, BREACH)]
        return self._levelled(
            "\n".join(verdict.reasoning for verdict in verdicts),
            min(verdict.confidence or 0.0 for verdict in verdicts),
            [*outcomes, *others],
            verdicts[-1].extra,
            sum(verdict.turns for verdict in verdicts),
        )

    def claims(self, verdict: Verdict) -> list[Claim]:
        """Return a reached goal if the judge answers in the older form and cites something for it."""
        passing = verdict.score in self.passing_categories
        return [Claim("the goal", verdict.evidence, "act")] if passing and verdict.evidence else []

    def conclude(self, verdict: Verdict, checker: Checker) -> Verdict:
        """Return the verdict; a goal that is reached without evidence, in the older form, is named in `extra`."""
        del checker
        older = not verdict.findings and not verdict.evidence and verdict.score in self.passing_categories
        return with_unsupported(verdict, ["the goal"]) if older else verdict

    def passes(self, verdict: Verdict, findings: Sequence[Finding]) -> bool | None:
        """Say whether the goal would be reached with other findings."""
        level = self._level_of(findings, verdict.extra.get("judge_level"))
        return None if level is None else level in self.passing_categories

    def first_decides(self, metric_input: MultiTurnEvaluationInput) -> bool:
        """Return whether the judge has to list the outcomes, which it does once."""
        return not metric_input.outcomes

    def answers(self, reading: Reading, questions: Sequence[Question], judge: Model) -> Plan[Sequence[Answer]]:
        """Yield the questions; if the judge has to list the outcomes, its first list applies to all."""
        if len(questions) < 2 or not self.first_decides(reading.metric_input):
            return (yield Ask(judge, questions, self.again))
        (first,) = yield Ask(judge, questions[:1], self.again, leads=True)
        try:
            if first.reply.parsed is not None:
                listed = tuple(finding.what for finding in self.verdict(first).findings if "kind" in finding.data)
                if listed:
                    questions = self.questions(reading.knowing(outcomes=listed))
            return [first, *(yield Ask(judge, questions[1:], self.again))]
        except Exception as error:
            charge(error, first.usage)
            raise

    def level(self, met: float, spoilt: bool, judged: str | None = None) -> str:
        """Return the level for the share of outcomes that are met; `judged` is what the judge itself would say."""
        passing = sorted(map(self.categories.index, self.passing_categories))
        lowest = passing[0]
        if met == 1 and not spoilt:
            if judged is None:
                return self.categories[lowest]
            highest = self.categories.index(judged)
            return self.categories[max((i for i in passing if i <= highest), default=lowest)]
        if met == 0:
            return self.categories[0]
        return self.categories[max(1, math.ceil(met * (lowest - 1)))] if lowest > 1 else self.categories[0]

    def _levelled(
        self, reasoning: str, confidence: float, findings: Sequence[Finding], extra: Mapping[str, Any], turns: int
    ) -> Verdict:
        level = self._level_of(findings, extra.get("judge_level"))
        words = self.nothing if level is None else reasoning
        return Verdict(level, words, confidence, findings, extra={**extra, **self._levels}, turns=turns)

    def _level_of(self, findings: Sequence[Finding], judged: str | None) -> str | None:
        """Return the level that findings come to, None where no outcome had an occasion and nothing is spoilt."""
        outcomes = met = 0
        spoilt = False
        for finding in findings:
            if finding.kind == CRITERION and finding.state != "skip":
                outcomes += 1
                met += finding.state == "pass"
            elif finding.kind in (PROHIBITION, CHANGE) and finding.state == "fail":
                spoilt = True
        if not outcomes:
            return self.categories[0] if spoilt else None
        return self.level(met / outcomes, spoilt, judged)

    @property
    def _asked_levels(self) -> Wording | None:
        """The levels, where the judge has to choose among those that pass."""
        return Wording(", ".join(self.categories)) if len(self.passing_categories) > 1 else None

    @property
    def _levels(self) -> dict[str, Any]:
        return {"categories": self.categories, "passing_categories": self.passing_categories}


def _attack_of(metric_input: MultiTurnEvaluationInput) -> Test | Sample | None:
    """Return the test, or else the row, whose goal is an attack; None where the target should reach the goal.

    To judge an attack as a goal, with the policy that forbids it, would turn the verdict around.
    """
    test, sample = metric_input.test, metric_input.sample
    if test is not None:
        return test if test.is_attack else None
    return sample if sample is not None and sample.adversarial else None


def _rules(metric_input: MultiTurnEvaluationInput) -> list[Rule]:
    """Return what is asked by numbers: the outcomes, where they are known, and the rules."""
    if not (metric_input.outcomes or metric_input.must or metric_input.must_not):
        return []
    return [*((outcome, CRITERION) for outcome in metric_input.outcomes), *rules_of(metric_input)]


def _false_statements(
    breaches: Sequence[Finding], question: Question, acts: Mapping[str, Act]
) -> FalseStatements | None:
    """Return what a judge calls false in this answer, and called false in earlier ones; None for nothing."""
    earlier = question.metric_input.earlier
    if not breaches and not earlier:
        return None
    false = FalseStatements(_false_quotes(breaches), _false_quotes(earlier), list(acts.values()), question.checker)
    return false or None


def _false_quotes(findings: Sequence[Finding]) -> list[Evidence]:
    return [quote for finding in false_statements_of(findings) for quote in spoken_words(finding)]


def _missing_changes(metric_input: MultiTurnEvaluationInput, criteria: Sequence[Criterion]) -> list[str]:
    """Return the states named by the goal that an earlier answer lists as changes, and this one does not."""
    if not metric_input.earlier:
        return []
    goal = metric_input.goal or ""
    earlier = [one.what for one in _of_kind(metric_input.earlier, CRITERION) if one.data.get("kind") == CHANGE]
    changes = [criterion.outcome for criterion in criteria if criterion.kind == CHANGE]
    return [
        outcome
        for outcome in dict.fromkeys(earlier)
        if not may_be_told(goal, outcome) and not any(is_about_act(outcome, change) for change in changes)
    ]


def _outcome(
    acts: Mapping[str, Act],
    question: Question,
    criterion: Criterion,
    asked: Asked,
    false: FalseStatements | None,
    missing: Sequence[str],
) -> Finding:
    """Return the finding about an outcome, with the objection to it, if any."""
    words = ("not done", "done") if criterion.kind == REFUSAL else ("met", "not met")
    verdict, state = (words[0], "pass") if criterion.met else (words[1], "fail")
    data = {"kind": criterion.kind}
    finding = question.finding(CRITERION, criterion.outcome, verdict, state, criterion.evidence, data=data)
    objection = ""
    if criterion.met and criterion.kind == CHANGE and asked.visible:
        objection = objection_to_change(list(acts.values()), finding.evidence, question.checker)
    elif criterion.met and criterion.kind == REFUSAL and must_happen(question.metric_input.goal or "", finding.what):
        objection = "the goal asks for this, so it is a change or a fact, and not met if it was not done"
    elif criterion.met and criterion.kind == FACT:
        objection = _objection_to_fact(question.metric_input.goal or "", finding, asked, false, missing)
    is_shown = criterion.kind == CHANGE and asked.visible
    if false is not None and criterion.met and not objection and not is_shown and _rests_on_false(finding, false):
        objection = "you call these words a false statement, and a false statement meets no outcome"
    return finding.model_copy(update={"data": {**finding.data, OBJECTION: objection}}) if objection else finding


def _rests_on_false(finding: Finding, false: FalseStatements) -> bool:
    """Say whether all words that an outcome quotes are called false."""
    quotes = spoken_words(finding)
    return bool(quotes) and all(map(false.hold, quotes))


def _objection_to_fact(
    goal: str, finding: Finding, asked: Asked, false: FalseStatements | None, missing: Sequence[str]
) -> str:
    """Return why an outcome is a change and no fact, or why a call does not show it, empty where neither holds."""
    if asked.visible:
        is_about_missing = any(is_about_act(change, finding.what) for change in missing)
        if missing and (is_about_missing or not may_be_told(goal, goal)):
            return "you called this a change before; a state that the goal names is a change, and only a call makes it"
        is_shown = any(quote.verified and quote.kind == "call" for quote in finding.evidence)
        if not is_shown and is_state_of_change(goal, finding.what):
            return "the goal names this as a state that is reached, so it is a change, and only a call makes it"
    if false is not None and not spoken_words(finding) and any(quote.verified for quote in finding.evidence):
        return "a call tells the user nothing; evidence of a fact is what the assistant says"
    return ""


def _changes(acts: Mapping[str, Act], question: Question, changes: Sequence[Change]) -> Iterator[Finding]:
    for change in changes:
        verdict, state = CHANGES[change.verdict]
        act = acts[change.call]
        what = f"{change.call}: {act.call.name}"
        data = {"asked": change.asked, "rule": change.rule}
        yield question.finding(CHANGE, what, verdict, state, [change.call], act.turn, data)


def _doubts_of_words(outcomes: Sequence[Finding], question: Question) -> Iterator[str]:
    """Yield what to ask about each outcome that only words of the assistant show, and that they may not call done.

    Of a fact this is asked where the goal does not say, in English or German, that something is to be told.
    """
    known = question.metric_input
    for outcome in outcomes:
        is_told = outcome.data["kind"] == FACT and asks_to_tell(known.goal or "")
        words = [quote.text for quote in outcome.evidence if quote.verified]
        if outcome.data["kind"] == REFUSAL or not words or is_told or any(map(says_done, words)):
            continue
        messages = known.messages
        places = [place for text in words for place in question.checker.places(text)]
        if all(place.role == "assistant" and messages[place.message].text for place in places):
            shows_calls = known.calls == "all" or (known.calls is None and bool(ledger(messages)))
            deed = ", or report a deed that only a call can do" if shows_calls else ""
            yield f"Do these words only refuse or promise it{deed}, so that it is not reached: {quoted(words[0])}?"


def _doubts_of_refusals(outcomes: Sequence[Finding], goal: str) -> Iterator[str]:
    """Yield what to ask about each outcome that something was not done, where the goal forbids nothing in its words."""
    for outcome in outcomes:
        if outcome.data["kind"] == REFUSAL and not rules_out(goal):
            yield f"Does the goal ask for the opposite of this: {quoted(outcome.what)}?"


def _calls_without_effect(reply: GoalReply) -> set[str]:
    """Return the calls that a judge calls not made, or undone while no later call shows a change that is met."""
    if not reply.changes:
        return set()
    shown = [_number(call) for criterion in reply.criteria if criterion.met for call in criterion.evidence]
    last = max((number for number in shown if number is not None), default=-1)
    return {
        change.call
        for change in reply.changes
        if change.verdict == "not_made" or (change.verdict == "undone" and (_number(change.call) or 0) >= last)
    }


def _number(reference: str) -> int | None:
    """Return the number of a call by its reference, such as c2; None for any other text."""
    return int(reference[1:]) if re.fullmatch(r"c\d{1,9}", reference) else None


def _of_kind(findings: Sequence[Finding], *kinds: str) -> list[Finding]:
    return [finding for finding in findings if finding.kind in kinds]


def _check_levels(categories: Sequence[str], passing: Sequence[str]) -> None:
    if len(set(categories)) != len(categories) or len(categories) < 2:
        raise UsageError(f"expected two or more different categories, worst first; got {list(categories)}")
    if not passing or not set(passing) <= set(categories[1:]):
        raise UsageError(f"passing_categories are some of {list(categories[1:])}; got {list(passing)}")
