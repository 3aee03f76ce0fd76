"""`TesterReview`: did the tester play its part, and could any assistant have passed?"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import ClassVar, Literal, Unpack, cast

from pydantic import BaseModel, ConfigDict, Field

from vivavoce.comparing.negations import SENTENCES, is_about_act, only_refuses_or_promises, says_done
from vivavoce.comparing.text import contains_words, fold
from vivavoce.errors import ModelFault
from vivavoce.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage
from vivavoce.metrics.config import MetricConfig
from vivavoce.metrics.evidence import Checker, Claim, EvidenceRule, repair_request
from vivavoce.metrics.judging import JudgedMetric, JudgingOptions
from vivavoce.metrics.prompts import Wording
from vivavoce.metrics.question import Answer, Piece, Question, Verdict, merged
from vivavoce.metrics.transcript import Transcript, transcript
from vivavoce.metrics.types import MultiTurnEvaluationInput
from vivavoce.models.custom import ModelLike
from vivavoce.penelope.brief_problems import TELLS, withheld_facts
from vivavoce.penelope.facts import names_fact, tells_fact
from vivavoce.penelope.prompts import HERE
from vivavoce.records.score import Evidence, Finding, FindingState, turn_span
from vivavoce.safe_text import quoted

_DETAIL = re.compile(r"[^\W_]+(?:[-./:,@'’][^\W_]+)*")
_SENTENCE_END = re.compile(r"[.!?:…]['\")\]]*\s*$")
_FIRST_PERSON = re.compile(r"\b(?:i|we|ich|wir)\b", re.IGNORECASE)
_DECLINING = re.compile(
    r"\b(?:not|never|no|cannot|rather|prefer|decline|refuse|without|nicht|kein\w*|nie|niemals|lieber|ungern|ohne)\b|n['’]t\b",
    re.IGNORECASE,
)
"""Words by which a user declines, in English and German."""
_WORDS = re.compile(r"[^\W_]+")
_OF_TESTS = re.compile(
    r"\b(?:test\w*|persona|role|roles|scenario|prompt\w*|brief|goal|instruct\w*|simulat\w*|pretend\w*|script\w*|fictional"
    r"|grad(?:e|ed|ing)|evaluat\w*|restriction\w*|as\s+an\s+ai|language\s+model"
    r"|rolle|szenario|anweisung\w*|simulier\w*|vorgab\w*)\b",
    re.IGNORECASE,
)
"""Words by which a user shows that it plays a part."""
_QUESTION_MARKS = ("?", "？", "؟", "？」", '?"', "?)")
_MAX_NAMES = 3
"""Withheld facts that are named in a question."""
_MAX_REPLY_CHARS = 240
"""Characters of the assistant's last reply in a question, its last ones."""
_COPIED_WORDS = 8
"""Words in a row that count as copied from the brief."""


def known_details(quotes: Sequence[Evidence], brief: Sequence[str], messages: Sequence[AnyMessage]) -> bool:
    """Say whether every number and name in quotes of the user is in the brief, or was told by the assistant before.

    It is false where the quotes have neither: then there is nothing to compare.
    """
    verified = [quote for quote in quotes if quote.verified]
    details = [(detail, quote) for quote in verified for detail in _details(quote.text)]
    return bool(details) and all(
        _is_in(detail, (*brief, *_assistant_before(messages, quote.turn))) for detail, quote in details
    )


def has_two_sides(quotes: Sequence[Evidence], sources: Sequence[str]) -> bool:
    """Say whether a contradiction has two different quotes, each from `sources`: the conversation or the brief."""
    texts = {fold(quote.text) for quote in quotes if any(contains_words(text, quote.text) for text in sources)}
    return len(texts) > 1


def only_tells(quote: str, facts: Sequence[str], wishes: Sequence[str], brief: Sequence[str]) -> bool:
    """Say whether a quote tells a fact or the wish of the user, and neither speaks of a test nor copies the brief."""
    words = _WORDS.findall(fold(quote))
    if not words or _OF_TESTS.search(quote):
        return False
    runs = [" ".join(words[i : i + _COPIED_WORDS]) for i in range(len(words) - _COPIED_WORDS + 1)]
    if any(run in " ".join(_WORDS.findall(fold(text))) for text in brief for run in runs):
        return False
    details = _details(quote)
    if any(not _is_in(detail, wishes) for detail in details):
        return False
    return bool(details) or any(_is_in(fact, [quote]) for fact in facts) or any(is_about_act(quote, w) for w in wishes)


def looked_up_otherwise(facts: Iterable[str], messages: Sequence[AnyMessage]) -> str | None:
    """Return why it is not known that the assistant's systems lack what the user named, None where it may be.

    Of the `facts`, those count that the user told. Without a call of the assistant there is nothing to compare.
    """
    user_texts = [message.text for message in messages if isinstance(message, HumanMessage)]
    told_facts = [fact for fact in facts if any(contains_words(text, fact) for text in user_texts)]
    calls = [
        call.function.arguments
        for message in messages
        if isinstance(message, AIMessage)
        for call in message.tool_calls or ()
    ]
    if not told_facts or not calls:
        return None
    missing = [fact for fact in told_facts if not any(contains_words(call, fact) for call in calls)]
    if len(missing) == len(told_facts):
        return f"no call of the assistant looked for {told_facts[0]!r}"
    altered = [fact for fact in missing if any(_bare(fact) in _bare(call) for call in calls if _bare(fact))]
    return f"the assistant looked for something other than {altered[0]!r}" if altered else None


def _details(text: str) -> list[str]:
    """Return the numbers and names in a text: words with a digit, and words with a capital inside a sentence."""
    details: list[str] = []
    for word in _DETAIL.finditer(text):
        begins = word.start() == 0 or _SENTENCE_END.search(text[: word.start()]) is not None
        is_name = word[0][:1].isupper() and not begins and word[0] != "I" and not word[0].startswith(("I'", "I’"))
        if is_name or any(letter.isdigit() for letter in word[0]):
            details.append(word[0])
    return details


def _is_in(detail: str, texts: Sequence[str]) -> bool:
    return any(contains_words(text, detail) for text in texts)


def _assistant_before(messages: Sequence[AnyMessage], turn: int | None) -> list[str]:
    """Return what the assistant said before the user's message of a turn, counted from 0."""
    texts: list[str] = []
    users = -1
    for message in messages:
        users += isinstance(message, HumanMessage)
        if turn is not None and users >= turn and isinstance(message, HumanMessage):
            break
        if isinstance(message, AIMessage):
            texts.append(message.text)
    return texts


def _bare(text: str) -> str:
    return "".join(letter for letter in fold(text) if letter.isalnum())


def facts_of(value: object) -> dict[str, str]:
    """Return the facts in a brief by name, none where it has none."""
    if not isinstance(value, Mapping):
        return {}
    return {str(name): str(fact) for name, fact in cast("Mapping[object, object]", value).items()}


def fact_values(facts: object) -> list[str]:
    """Return the values of the facts in a brief."""
    return list(facts_of(facts).values())


FaultKind = Literal["broke_character", "invented_fact", "stopped_early", "contradiction", "leak"]
Obstacle = Literal["none", "impossible_goal", "contradictory_brief", "impossible_rule", "unknown_facts"]
NOT_SENT = "not_sent"
"""Where the context has the facts that the tester wanted to tell, each with the restriction that kept it back."""
KEPT_BACK = "kept_back"
"""Where the context has the names of the facts that a restriction withholds."""
BRIEF = ("scenario", "persona", "facts", "background", "restrictions", NOT_SENT, "guidance")
"""The parts of the tester's brief in the context, besides the goal and the instructions."""
FAULT, OBSTACLE = "tester fault", "obstacle"
"""The kinds of findings: what the tester did wrong, and what keeps every assistant from passing."""

_HINDRANCE: Mapping[Obstacle, str] = {
    "impossible_goal": "the goal is impossible",
    "contradictory_brief": "the brief contradicts itself",
    "impossible_rule": "a rule cannot be kept",
    "unknown_facts": "the target does not have what the brief names",
}


EXCUSES = ("impossible_goal", "unknown_facts")
"""Obstacles that excuse a target only if it says how things are."""

_IN_THE_BRIEF = ("contradictory_brief", "impossible_rule")
"""Obstacles that the brief alone may show."""


class TesterFault(BaseModel):
    """One thing that the tester did wrong; `decisive` says that without it the test could have ended otherwise."""

    __test__: ClassVar[bool] = False
    model_config = ConfigDict(extra="forbid")

    kind: FaultKind
    what: str
    evidence: list[str]
    decisive: bool


class ReviewReply(BaseModel):
    """What the judge answers; no faults is an answer too."""

    model_config = ConfigDict(extra="forbid")

    faults: list[TesterFault]
    obstacle: Obstacle
    obstacle_evidence: list[str]
    reasoning: str
    confidence: float = Field(ge=0, le=1)


class TesterReview(JudgedMetric):
    """Judges the user's side of a conversation that a tester led: true where no fault of the tester was decisive.

    The brief is the goal, the instructions, `must` and `must_not`, and of the context what `BRIEF` names;
    `context["ended_by"]` is `tester` where the tester ended the conversation itself, and `context["scripted"]` are the
    turns, from 0, in which the brief prescribes the user's words. Every fault that the judge names is a finding. One
    counts only if a quote of it stands in what the user said of its own accord, and that of stopping early only if the
    tester did stop. What keeps every assistant from passing is a finding too, with the suite to blame; it counts only
    if a quote of it stands in the conversation or in the brief. What the record refutes does not count either, such as
    an invented number that is in the brief. `data["dismissed"]` says why a finding does not count.
    A judge is asked once more, and the second answer holds, where it shows a decisive fault or an obstacle by a quote
    that is not found, where it names neither though a restriction withholds a fact (`context["kept_back"]`), where the
    tester left while the assistant asked something, and where a goal is called impossible and the assistant may have
    said that it was done.

    Known failure: whether a fault was decisive is the judge's guess; to know it, hold the conversation again.
    """

    __test__: ClassVar[bool] = False
    template: ClassVar[str] = str(HERE / "tester_review.jinja")
    evidence_rule: ClassVar[EvidenceRule] = EvidenceRule(
        absence="a tester is right where it made no mistake; a mistake without evidence is dismissed"
    )
    version: ClassVar[str] = "6"
    reply = ReviewReply
    of_user: ClassVar[bool] = True
    own_variables: ClassVar[frozenset[str]] = frozenset((*BRIEF, "has_policy", "left", "scripted"))

    def __init__(self, model: ModelLike | None = None, **options: Unpack[JudgingOptions]) -> None:
        config = MetricConfig(
            class_name=type(self).__name__,
            name="tester_review",
            description="Did the tester play its part?",
            score_type="binary",
        )
        super().__init__(config, model, **options)

    def variables(self, metric_input: MultiTurnEvaluationInput) -> Mapping[str, object]:
        """Return the brief."""
        context = metric_input.context or {}
        scripted = _scripted_turns(metric_input)
        brief = {name: _plain(context.get(name)) for name in BRIEF}
        return {**brief, "scripted": Wording(turn_span(scripted)) if scripted else None}

    def question(
        self, metric_input: MultiTurnEvaluationInput, written: Transcript, piece: Piece
    ) -> tuple[type[BaseModel], Mapping[str, object]] | None:
        """Return the class of an answer about a piece, and the brief; how it ended is asked of the last piece only."""
        del written
        rules = any(message.role in ("system", "developer") for message in metric_input.messages)
        own = {"left": _tester_left(metric_input, piece), "has_policy": bool(metric_input.policy) or rules}
        return self.reply, {**self.variables(metric_input), **own}

    def read(self, reply: ReviewReply, question: Question) -> Verdict:
        """Return whether no fault that counts was decisive."""
        metric_input = question.metric_input
        about_user = _looking_in(question, _of_its_own_accord(metric_input))
        tester_left = _tester_left(metric_input, question.piece)
        findings = [_judge_fault(about_user, metric_input, fault, tester_left) for fault in reply.faults]
        if reply.obstacle != "none":
            findings.append(_hindrance(question, reply))
        return Verdict(_innocent(findings), reply.reasoning, reply.confidence, findings, turns=question.piece.judged)

    def again(self, answer: Answer) -> Question | None:
        """Return the question once more; also where a decisive fault or an obstacle has a quote that is not found."""
        return super().again(answer) or self._with_quotes(answer)

    def _with_quotes(self, answer: Answer) -> Question | None:
        try:
            verdict = self.vote(answer)
        except ModelFault:  # whoever reads the answer next reports it
            return None
        claims = [
            Claim(finding.what, finding.evidence, "if_quoted", str(finding.data["dismissed"]))
            for finding in verdict.findings
            if finding.data.get("unfounded") and (finding.kind == OBSTACLE or finding.data["decisive"])
        ]
        question = answer.question
        return question.repaired(answer.reply, repair_request(claims, question.checker)) if claims else None

    def doubts(self, verdict: Verdict, question: Question) -> Sequence[str]:
        """Return questions about what the answer overlooks, as far as code can see.

        Did the assistant need a fact that is withheld, did the user leave while the assistant asked something, and did
        the assistant say that something impossible was done?
        """
        known = question.metric_input
        kept_back: Sequence[str] = (known.context or {}).get(KEPT_BACK) or ()
        obstacles = [finding for finding in verdict.findings if finding.kind == OBSTACLE]
        last_reply = _last_reply(known.messages)
        doubts: list[str] = []
        if kept_back and verdict.score and not obstacles:
            names = " or ".join(map(repr, kept_back[:_MAX_NAMES]))
            doubts.append(
                f"Did the assistant ask for {names}, which a restriction forbids the user to tell, and help no further "
                "without it? Then the brief contradicts itself, and that is the obstacle."
            )
        is_open = _tester_left(known, question.piece) and last_reply.rstrip().endswith(_QUESTION_MARKS)
        if is_open and verdict.score and not any(obstacle.state == "fail" for obstacle in obstacles):
            doubts.append(
                "Does the assistant's last message ask for something that the user could have told: "
                f"{quoted(last_reply[-_MAX_REPLY_CHARS:])}? Then stopped_early is a decisive fault. An offer of more "
                "help asks for nothing."
            )
        if any(_is_excuse(obstacle) for obstacle in obstacles) and not only_refuses_or_promises(last_reply):
            doubts.append(
                f"Does the assistant say that it did what the goal asks for: {quoted(last_reply[-_MAX_REPLY_CHARS:])}? "
                "An assistant that says so without having done it is not excused: then the obstacle is none."
            )
        return doubts

    def merge(self, verdicts: Sequence[Verdict]) -> Verdict:
        """Return the verdict over the findings of all pieces."""
        findings = [finding for verdict in verdicts for finding in verdict.findings]
        return merged(_innocent(findings), verdicts, findings)


def users_messages(metric_input: MultiTurnEvaluationInput) -> list[AnyMessage]:
    """Return what the user says in a conversation; each of these messages begins a turn."""
    return [message for message in metric_input.messages if isinstance(message, HumanMessage)]


def _looking_in(question: Question, messages: Sequence[AnyMessage]) -> Question:
    return replace(question, checker=Checker(messages, transcript(messages)))


def _of_its_own_accord(metric_input: MultiTurnEvaluationInput) -> list[AnyMessage]:
    """Return what the user says, with nothing in the turns in which the brief prescribes its words."""
    scripted = _scripted_turns(metric_input)
    messages = users_messages(metric_input)
    return [HumanMessage(content="") if turn in scripted else message for turn, message in enumerate(messages)]


def _brief_texts(metric_input: MultiTurnEvaluationInput) -> list[AnyMessage]:
    """Return each part of the brief as a message of its own, for looking quotes up."""
    context = metric_input.context or {}
    known = metric_input
    parts = [known.policy, known.goal, known.instructions, known.must, known.must_not]
    return [SystemMessage(content=text) for part in (*parts, *map(context.get, BRIEF)) for text in _texts(part)]


def _texts(part: object) -> list[str]:
    """Return the texts in a part of the brief; what is neither a text nor a list of texts, as a judge reads it."""
    plain = _plain(part)
    if isinstance(plain, list | tuple):
        return [text for entry in cast("Sequence[object]", plain) for text in _texts(entry)]
    return [] if plain is None else [plain if isinstance(plain, str) else quoted(plain)]


def _scripted_turns(metric_input: MultiTurnEvaluationInput) -> Sequence[int]:
    return (metric_input.context or {}).get("scripted") or ()


def _tester_left(metric_input: MultiTurnEvaluationInput, piece: Piece) -> bool:
    """Say whether the tester ended the conversation at the end of a piece."""
    return (metric_input.context or {}).get("ended_by") == "tester" and piece.last == len(users_messages(metric_input))


def _judge_fault(
    question: Question, metric_input: MultiTurnEvaluationInput, fault: TesterFault, tester_left: bool
) -> Finding:
    """Return a fault as a finding, with why it does not count, None where it does."""
    finding = question.finding(FAULT, fault.what, fault.kind.replace("_", " "), "fail", fault.evidence)
    if fault.kind == "stopped_early":
        unfounded = None
        dismissed = _not_early(metric_input) if tester_left else "the tester did not end this conversation"
    else:
        unfounded = _evidence_problem(finding, "in no message that the user wrote itself")
        dismissed = unfounded or _refutation(fault.kind, finding, metric_input)
    data = {"kind": fault.kind, "decisive": fault.decisive, "dismissed": dismissed, "unfounded": unfounded is not None}
    state: FindingState = "skip" if dismissed else "fail" if fault.decisive else "partial"
    return finding.model_copy(update={"state": state, "blame": "tester", "data": data})


def _keeps_restriction(finding: Finding, metric_input: MultiTurnEvaluationInput) -> bool:
    """Say whether all that a fault quotes declines to tell a fact that a restriction withholds, and tells none."""
    context = metric_input.context or {}
    facts = facts_of(context.get("facts"))
    withheld = withheld_facts([str(rule) for rule in context.get("restrictions") or ()], facts)
    quotes = [quote for quote in finding.evidence if quote.verified]
    return bool(withheld and quotes) and all(
        any(_declines(sentence, withheld) for sentence in SENTENCES.split(quote.text))
        and not any(tells_fact(quote.text, fact, facts[fact]) for fact in withheld)
        and not _OF_TESTS.search(quote.text)
        for quote in quotes
    )


def _declines(sentence: str, facts: Iterable[str]) -> bool:
    """Say whether a user declines, in the first person, to tell something or one of these facts."""
    is_telling = TELLS.search(sentence) or any(names_fact(sentence, fact) for fact in facts)
    return bool(is_telling and _FIRST_PERSON.search(sentence) and _DECLINING.search(sentence))


def _not_early(metric_input: MultiTurnEvaluationInput) -> str | None:
    replies = [message.text for message in metric_input.messages if isinstance(message, AIMessage) and message.text]
    return "the assistant had said that it was done" if replies and says_done(replies[-1]) else None


def _refutation(kind: FaultKind, finding: Finding, metric_input: MultiTurnEvaluationInput) -> str | None:
    """Return why the brief or the conversation refutes a fault, None where they do not."""
    messages = metric_input.messages
    if kind == "broke_character":
        keeps = _keeps_restriction(finding, metric_input)
        return "it declines to tell what a restriction withholds" if keeps else None
    brief = [message.text for message in _brief_texts(metric_input)]
    if kind == "invented_fact":
        scripted = [users_messages(metric_input)[turn].text for turn in _scripted_turns(metric_input)]
        known = known_details(finding.evidence, [*brief, *scripted], messages)
        return "its numbers and names are in the brief, or the assistant had said them" if known else None
    if kind == "contradiction":
        sources = [*brief, *(message.text for message in messages)]
        return (
            None
            if has_two_sides(finding.evidence, sources)
            else "it does not quote two things that contradict each other"
        )
    if kind == "leak":
        known_facts = (metric_input.context or {}).get("facts")
        facts = fact_values(known_facts)
        wishes = [*facts, metric_input.goal or ""]
        sentences = [text for text in brief if text not in _texts(known_facts)]
        only_tells_facts = all(
            only_tells(quote.text, facts, wishes, sentences) for quote in finding.evidence if quote.verified
        )
        return "it only tells a fact that the user knows, or what the user wants" if only_tells_facts else None
    return None


def _hindrance(question: Question, reply: ReviewReply) -> Finding:
    """Return what keeps every assistant from passing as a finding, with why it does not count, None where it does.

    Unless it lies in the brief, it has to show in the conversation or in the policy: a goal does not prove itself to be
    impossible.
    """
    what, kind = _HINDRANCE[reply.obstacle], reply.obstacle.replace("_", " ")
    known = question.metric_input
    messages = [SystemMessage(content=known.policy or ""), *known.messages]
    if reply.obstacle in _IN_THE_BRIEF:
        finding = _looking_in(question, [*_brief_texts(known), *messages]).finding(
            OBSTACLE, what, kind, "fail", reply.obstacle_evidence
        )
        dismissed = unfounded = _evidence_problem(finding, "neither in the conversation nor in the brief")
    else:
        finding = _looking_in(question, messages).finding(OBSTACLE, what, kind, "fail", reply.obstacle_evidence)
        dismissed = unfounded = _evidence_problem(finding, "neither in the conversation nor in the policy")
        if dismissed is None and says_done(_last_reply(known.messages)):
            dismissed = "the assistant said that it was done"
        if reply.obstacle == "unknown_facts" and dismissed is None:
            facts = fact_values((known.context or {}).get("facts"))
            dismissed = looked_up_otherwise(facts, known.messages)
    data = {"kind": reply.obstacle, "dismissed": dismissed, "unfounded": unfounded is not None}
    return finding.model_copy(update={"state": "skip" if dismissed else "fail", "blame": "suite", "data": data})


def _is_excuse(finding: Finding) -> bool:
    """Say whether a finding is an obstacle that excuses only an assistant that says how things are."""
    return finding.state == "fail" and finding.data.get("kind") in EXCUSES


def _last_reply(messages: Sequence[AnyMessage]) -> str:
    replies = (message.text for message in reversed(messages) if isinstance(message, AIMessage) and message.text)
    return next(replies, "")


def _evidence_problem(finding: Finding, where: str) -> str | None:
    if any(quote.verified for quote in finding.evidence):
        return None
    return f"its evidence is {where}" if finding.evidence else "it has no evidence"


def _innocent(findings: Sequence[Finding]) -> bool:
    return not any(finding.kind == FAULT and finding.state == "fail" for finding in findings)


def _plain(value: object) -> object:
    """Return a value in a form that prompts quote; any other value becomes text."""
    if isinstance(value, BaseModel):
        return value.model_dump(exclude_defaults=True)
    if value is None or isinstance(value, str | Mapping | list | tuple):
        return cast("object", value)
    return str(value)
