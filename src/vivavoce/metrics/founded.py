"""`FoundedMetric`: a judged metric whose verdict never hangs on a quote that is not in the conversation."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

from vivavoce.errors import ModelFault
from vivavoce.metrics.judging import JudgedMetric
from vivavoce.metrics.question import Answer, Question
from vivavoce.metrics.reading import Reading
from vivavoce.metrics.steps import Ask, Plan
from vivavoce.metrics.verdict import Verdict
from vivavoce.models.model import Model
from vivavoce.records.failure import shorten
from vivavoce.records.score import Evidence, Finding

CRITERION, PROHIBITION = "criterion", "prohibition"
"""The kinds of findings: what has to happen, and what must not."""

WITHOUT_CALL = "without_call"
"""What marks, in the data of a finding, a change that is said to have been made and that no call can have made."""


class FoundedMetric(JudgedMetric):
    """A metric whose findings say what happened, with evidence that is looked up.

    An answer that says something happened, and whose evidence for it is nowhere in the conversation, is asked for once
    more. If the verdict still hangs on it, it is an error of the judge and no score.
    """

    @abstractmethod
    def passes(self, verdict: Verdict, findings: Sequence[Finding]) -> bool | None:
        """Say whether a verdict would pass with other findings, None where there would be none."""

    def conclude(self, verdict: Verdict) -> Verdict:
        """Return the verdict, unless it hangs on evidence that is nowhere in the conversation.

        Raises:
            ModelFault: it does.
        """
        doubtful = [finding for finding in verdict.findings if unfounded(finding)]
        if not doubtful:
            return verdict
        worst, best = (
            [one.model_copy(update={"state": state}) if one in doubtful else one for one in verdict.findings]
            for state in ("fail", "pass")
        )
        if self.passes(verdict, worst) == self.passes(verdict, best):
            return verdict
        first = doubtful[0]
        about = repr(shorten(first.what, 200))
        if WITHOUT_CALL in first.data:
            message = f"the verdict hangs on a change that no call made: {about}"
            raise ModelFault(message, kind="evidence", evidence=verdict.reasoning)
        raise hanging(first.evidence, about, verdict.reasoning)

    def answers(self, reading: Reading, questions: Sequence[Question], judge: Model) -> Plan[Sequence[Answer]]:
        """Yield the questions; one whose answer rests on evidence that is not there is asked once more."""
        del reading
        return (yield Ask(judge, questions, self.again))

    def again(self, answer: Answer) -> Question | None:
        """Return the question to ask once more where its answer says that something happened without evidence."""
        try:
            doubtful = any(map(unfounded, self.verdict(answer).findings))
        except ModelFault:  # whoever reads the answer next says so
            return None
        return answer.question.again if doubtful else None


def hanging(evidence: Sequence[Evidence], about: str, reasoning: str) -> ModelFault:
    """Return the error of a judge whose verdict hangs on evidence that is nowhere in the conversation."""
    quotes = [shorten(quote.text, 200) for quote in evidence]
    support = f"a quote that is not in the conversation: {quotes[0]!r}" if quotes else "no evidence at all"
    return ModelFault(f"the verdict hangs on {support}; it is about {about}", kind="evidence", evidence=reasoning)


def unfounded(finding: Finding) -> bool:
    """Say whether something is said to have happened on evidence of which nothing is in the conversation.

    What must not have happened, and did, needs evidence in any case; a change, where calls are shown, a call.
    """
    if finding.state == "pass" and WITHOUT_CALL in finding.data:
        return True
    if finding.kind == PROHIBITION:
        claimed = finding.state == "fail"
    else:
        claimed = finding.kind == CRITERION and finding.state == "pass" and bool(finding.evidence)
    return claimed and not any(quote.verified for quote in finding.evidence)
