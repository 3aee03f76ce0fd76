"""The ledger: the calls of a conversation that may have changed something, each with its result and what came before.

A judge that reads in haste believes what the assistant says it did. Beside the ledger it compares values instead.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import cast

from vivavoce.comparing.text import fold, is_blank
from vivavoce.messages import AnyMessage, ToolCall
from vivavoce.metrics.evidence import CRITERION, Checker
from vivavoce.metrics.transcript import Transcript, named, written_arguments
from vivavoce.metrics.types import MultiTurnEvaluationInput
from vivavoce.records.score import Evidence, Finding, shorten, turn_label
from vivavoce.records.trajectory import CallState, call_records
from vivavoce.safe_text import quoted

WORDS = 240
"""Characters that the ledger shows of a result, and of the user's message before a call."""

READS = frozenset(
    """
    browse calculate check compare compute convert count describe display estimate exists explain fetch find get has
    help inspect is list load lookup look ping preview query quote read recall recommend retrieve search
    see show suggest summarize think translate validate verify view whoami
    """.split()  # noqa: SIM905
)
"""Verbs in the name of a tool that only reads."""

WRITES = frozenset(
    """
    add apply approve assign block book buy cancel change charge close confirm create delete disable edit enable
    execute insert issue lock make modify move pay patch post purchase put redeem refund register reject remove
    rename replace reschedule reserve reset return revoke save schedule send set submit transfer unblock unlock
    update upgrade upload write
    """.split()  # noqa: SIM905
)
"""Verbs in the name of a tool that changes something."""

HANDS_OVER = frozenset(("agent", "agents", "escalate", "handoff", "human", "humans", "operator", "supervisor"))
"""Words in the name of a tool that ends in somebody else's hands: it changes who talks, and no data."""

ALTERS = frozenset(("cancel", "delete", "disable", "edit", "enable", "modify", "remove", "rename", "update"))
"""Verbs whose object is changed itself, also where it is called an agent."""

_DOUBT = re.compile(
    r"""\b(?:not|no|never|cannot|unable|already|taken|full|occupied|pending|wait\w*|queue\w*|declin\w*|reject\w*|refus\w*
      |den(?:y|ied)|unavailable|sold\W*out|failed|error|expired|invalid|conflict|limit|later|false|null|none|0|out|open|missing|offen|fehlt|nicht|kein\w*
      |abgelehnt|leider|bereits|schon|vergeben|belegt|warte\w*|ausstehend|ungültig|fehlgeschlagen)\b|n['’]t\b""",
    re.VERBOSE,
)
"""Words of a result that may say that a call was not made."""

_SUCCESS = re.compile(
    r"""\b(?:ok|okay|done|success\w*|succeeded|true|yes|confirmed|completed?|accepted|approved|booked|cancell?ed|refunded
      |blocked|unblocked|locked|unlocked|updated|created|sent|saved|moved|changed|deleted|removed|reserved|scheduled|paid
      |ordered|added|closed|opened|extended|renewed|issued|shipped|transferred|upgraded|registered|activated|applied
      |erledigt|bestätigt|gebucht|storniert|erstattet|gesperrt|geändert|gelöscht|verschoben|bestellt|gespeichert)\b""",
    re.VERBOSE,
)
"""Words of a result that say that a call was made."""

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")


@dataclass(slots=True)
class Act:
    """A call that may have changed something; `reference` is that of the transcript, as `c2`."""

    reference: str
    turn: int | None
    call: ToolCall
    user_words: str
    state: CallState
    result: str | None = None

    @property
    def failed(self) -> bool:
        """Whether it failed, or was never made."""
        return self.state in ("failed", "refused")

    @property
    def may_have_failed(self) -> bool:
        """Whether the result may say that it was not done.

        A result shows that it was done by a word of success, without a word of failure and without another value for an
        argument of the call.
        """
        words = fold((self.result or "")[:WORDS]).strip()
        is_clear = not words or _SUCCESS.search(words) is not None
        return self.failed or not is_clear or _DOUBT.search(words) is not None or self._has_other_values

    @property
    def _has_other_values(self) -> bool:
        """Whether the result repeats an argument of the call with another value."""
        sent, returned = (_plain_values(text) for text in (self.call.function.arguments, self.result or ""))
        return any(fold(returned[key]) != fold(value) for key, value in sent.items() if key in returned)

    @property
    def line(self) -> str:
        """The act on one line, with all that others wrote in it quoted."""
        call = f"{self.reference} {named(self.call.name)}"
        if self.failed:
            return f"{call} failed: {quoted(shorten(self.result, WORDS))}"
        return f"{call} {written_arguments(self.call.function.arguments)} {self._outcome}"

    @property
    def _outcome(self) -> str:
        """What came back, in the tool's own words: whether they refuse what was asked for is not certain for code."""
        if self.result is None:
            return "has no result"
        return "returned nothing" if is_blank(self.result) else f"returned {quoted(shorten(self.result, WORDS))}"


def lines(acts: Sequence[Act]) -> Iterator[str]:
    """Yield the lines of a ledger: the acts of each turn below what the user said in it."""
    for turn, group in groupby(acts, key=lambda act: act.turn):
        of_turn = list(group)
        words = of_turn[0].user_words
        after = f", after the user said {quoted(shorten(words, WORDS))}" if words else ""
        yield f"{turn_label(turn)}{after}:"
        yield from (f"- {act.line}" for act in of_turn)


def ledger(messages: Sequence[AnyMessage]) -> list[Act]:
    """Return the calls of a conversation that may have changed something, by the names of their tools."""
    called = call_records(messages)
    if not called:
        return []
    acts: list[Act] = []
    records = iter(called)
    count, turn, user_words = 0, None, ""
    for message in messages:
        if message.role == "user":
            turn = 0 if turn is None else turn + 1
            user_words = message.text
        elif message.role == "assistant":
            for call in message.tool_calls or ():
                record = next(records)
                if may_change(call.name):
                    result = None if record.result is None else record.result.text
                    acts.append(Act(f"c{count}", turn, call, user_words, record.state, result))
                count += 1
    return acts


def objection_to_change(acts: Sequence[Act], evidence: Sequence[Evidence], checker: Checker) -> str:
    """Return why evidence does not show a change, empty where one of the acts shows it; failed ones are left out."""
    made = [act for act in acts if not act.failed]
    if any(_is_about(quote, act, checker) for quote in evidence if quote.verified for act in made):
        return ""
    if not made:
        return "no call made this change"
    references = ", ".join(act.reference for act in made)
    return f"evidence of a change is a call whose result shows that it was done, one of {references}"


def doubts_of_changes(findings: Iterable[Finding], acts: Sequence[Act]) -> list[str]:
    """Return what to ask a judge about each outcome that is met by a call whose result may say otherwise."""
    by_reference = {act.reference: act for act in acts}
    doubts: list[str] = []
    for finding in findings:
        cited = [by_reference[quote.text] for quote in finding.evidence if quote.text in by_reference]
        if finding.kind == CRITERION and finding.state == "pass" and cited and cited[-1].may_have_failed:
            what = quoted(shorten(finding.what, WORDS))
            doubts.append(
                f"Compare the result of {cited[-1].reference} with what was asked for, value by value. Does it show "
                f"another value, or that this was not done, or not yet: {what}?"
            )
    return doubts


def _plain_values(text: str) -> dict[str, str]:
    """Return the texts and numbers of a JSON object by the names of their fields, none for any other text."""
    try:
        value = json.loads(text)
    except ValueError:
        return {}
    if not isinstance(value, dict):
        return {}
    fields = cast("dict[str, object]", value)
    return {fold(name): str(field) for name, field in fields.items() if isinstance(field, str | int | float)}


def _is_about(quote: Evidence, act: Act, checker: Checker) -> bool:
    """Say whether a quote names a call, or stands in its arguments or its result."""
    if quote.kind == "call":
        return quote.text == act.reference
    if fold(quote.text) in fold(f"{act.call.name} {act.call.function.arguments}"):
        return True
    results = {place.message for place in checker.places(act.reference) if place.role == "tool"}
    return any(place.message in results for place in checker.places(quote.text))


def may_change(name: str) -> bool:
    """Say whether a tool of that name may change something.

    The first verb decides. Without one it may, unless it hands over or is named after a status.
    """
    words = [word.lower() for word in _WORD.findall(name)]
    verb = next((word for word in words if word in WRITES or word in READS), None)
    if not HANDS_OVER.isdisjoint(words):
        return verb in ALTERS
    return "status" not in words if verb is None else verb in WRITES


def tools_visible(metric_input: MultiTurnEvaluationInput, written: Transcript) -> bool:
    """Say whether a judge sees the tool calls of a conversation, so that what has no call was not done.

    It does where there are calls, or where the context says under `tools` which tools the assistant has, unless the
    input says under `calls` how many of them are shown.
    """
    if metric_input.calls is not None:
        return written.shown.tools and metric_input.calls == "all"
    return written.shown.tools and bool(written.calls or (metric_input.context or {}).get("tools"))
