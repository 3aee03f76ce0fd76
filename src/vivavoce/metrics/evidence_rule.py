"""`EvidenceRule`: which claims of a judge need evidence, and who must have said or done what it cites.

Every judged metric declares its rule, and `JudgedMetric` applies it: a claim without evidence that counts is asked for
once more, and if the verdict still depends on it, that is an error of the judge. Missing, blank, and invented evidence
are treated alike.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Literal

from vivavoce.errors import ModelFault
from vivavoce.metrics.evidence import Checker
from vivavoce.metrics.prompts import HERE
from vivavoce.records.failure import shorten
from vivavoce.records.score import Evidence, Finding, FindingState
from vivavoce.safe_text import quoted

CRITERION, PROHIBITION = "criterion", "prohibition"
"""The kinds of findings: what has to happen, and what must not."""

WITHOUT_CALL = "without_call"
"""The mark, in the data of a finding, of a change that a judge reports as made and that no call can have made."""

Source = Literal["act", "conversation", "user", "if_quoted"]
"""Whose words count: those of the assistant and its tools (`act`), those of the user, too (`conversation`), or those of
the `user` alone. With `if_quoted` anybody's words count, and a claim without a quote stands.
"""

_ROLES: Mapping[Source, frozenset[str]] = {
    "act": frozenset(("assistant", "tool")),
    "conversation": frozenset(("assistant", "tool", "user")),
    "user": frozenset(("user",)),
    "if_quoted": frozenset(("assistant", "tool", "user", "system", "developer")),
}
_NAMES: Mapping[Source, str] = {
    "act": "the assistant or a tool",
    "conversation": "the user, the assistant, or a tool",
    "user": "the user",
    "if_quoted": "somebody",
}
_QUOTE_CHARS = 200


@dataclass(frozen=True, slots=True)
class EvidenceRule:
    """Which claims of a judge need evidence: `findings` by kind and state, `verdict` that the whole holds.

    A claim that is not named needs none. `absence` says why: the metric passes because something is not there, so
    there is nothing to quote. Findings whose `data["kind"]` is one of `absence_kinds` stand without a quote, but what
    they quote must be there.
    """

    findings: Mapping[tuple[str, FindingState], Source] = field(default_factory=dict[tuple[str, FindingState], Source])
    verdict: Source | None = None
    absence: str = ""
    absence_kinds: frozenset[str] = frozenset()


ACTS: Mapping[tuple[str, FindingState], Source] = {(CRITERION, "pass"): "act", (PROHIBITION, "fail"): "act"}
"""Criteria that are met, and prohibitions that are broken, are acts."""


@dataclass(frozen=True, slots=True)
class Claim:
    """Something that a judge says, with the evidence that it gives and whose words count; `what` says it in words."""

    what: str
    evidence: Sequence[Evidence]
    source: Source
    without_call: bool = False

    def is_supported(self, checker: Checker) -> bool:
        """Return whether a piece of the evidence is in the words that count.

        What was not found when the judge answered does not count: it may stand after the turn that was judged.
        """
        if self.without_call:
            return False
        if not self.evidence:
            return self.source == "if_quoted"
        return any(quote.verified and checker.is_from(quote.text, _ROLES[self.source]) for quote in self.evidence)

    def problem(self, checker: Checker) -> str:
        """Return what is wrong with the evidence, as a request to the judge."""
        if self.without_call:
            return f"No call made this change: {_quote(self.what)}."
        if not self.evidence:
            rule = "Copy a quote exactly from one message, or give the reference of a tool call."
            return f"There is no evidence for {_quote(self.what)}. {rule}"
        text = _quote(self.evidence[0].text)
        if not checker.is_from(self.evidence[0].text, _ROLES["if_quoted"]):
            return f"This quote is in no message: {text}. Copy one exactly."
        return f"This quote is not what {_NAMES[self.source]} said or did: {text}. Copy one that is."

    def fault(self, checker: Checker, reasoning: str) -> ModelFault:
        """Return the error of a judge whose verdict depends on this claim."""
        about = repr(shorten(self.what, _QUOTE_CHARS))
        if self.without_call:
            message = f"the verdict depends on a change that no call made: {about}"
        else:
            message = f"the verdict depends on {self._support(checker)}; it is about {about}"
        return ModelFault(message, kind="evidence", evidence=reasoning)

    def _support(self, checker: Checker) -> str:
        if not self.evidence:
            return "no evidence at all"
        first = self.evidence[0].text
        text = repr(shorten(first, _QUOTE_CHARS))
        if not self.evidence[0].verified or not checker.is_from(first, _ROLES["if_quoted"]):
            return f"a quote that is not in the conversation: {text}"
        return f"a quote that is not what {_NAMES[self.source]} said or did: {text}"


def claim_of(finding: Finding, rule: EvidenceRule) -> Claim | None:
    """Return what a finding claims, None where it needs no evidence."""
    if finding.state == "pass" and WITHOUT_CALL in finding.data:
        return Claim(finding.what, finding.evidence, "act", without_call=True)
    source = rule.findings.get((finding.kind, finding.state))
    if source is None:
        return None
    is_absence = finding.data.get("kind") in rule.absence_kinds
    return Claim(finding.what, finding.evidence, "if_quoted" if is_absence else source)


def unsupported_findings(findings: Iterable[Finding], rule: EvidenceRule, checker: Checker) -> list[Finding]:
    """Return the findings whose claims have no evidence that counts."""
    claims = ((finding, claim_of(finding, rule)) for finding in findings)
    return [finding for finding, claim in claims if claim is not None and not claim.is_supported(checker)]


def repair_request(claims: Sequence[Claim], checker: Checker) -> str:
    """Return the words that ask a judge for a better answer, which say what is wrong with its evidence."""
    problems = "\n".join(f"- {claim.problem(checker)}" for claim in claims)
    return _repair_prompt().replace("{{ problems }}", problems)


@cache
def _repair_prompt() -> str:
    return (HERE / "evidence_repair.txt").read_text(encoding="utf-8").strip()


def _quote(text: str) -> str:
    return quoted(shorten(text, _QUOTE_CHARS))
