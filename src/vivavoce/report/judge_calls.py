"""Calls of a judge in words: the texts of the request and the reply, what it took, and all of it in the terminal."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.text import Text

from vivavoce.messages import AIMessage, AnyMessage
from vivavoce.records.details import in_words
from vivavoce.records.replies import JudgeCall, JudgeExchange
from vivavoce.records.score import to_number, turn_span
from vivavoce.report.html.wording import clock, day
from vivavoce.report.text import Labelled
from vivavoce.report.transcript import words_of
from vivavoce.safe_text import safe


def asked_text(message: AnyMessage) -> str:
    """Return a message of a request as text."""
    calls = (message.tool_calls or ()) if isinstance(message, AIMessage) else ()
    return "\n".join(filter(None, (words_of(message), *(f"{call.name}({call.function.arguments})" for call in calls))))


def replied_text(call: JudgeCall) -> str:
    """Return the reply of a call as text; one that calls tools, too."""
    tools = (f"{tool_call.name}({tool_call.function.arguments})" for tool_call in call.tool_calls)
    return "\n".join(filter(None, (call.text or "", *tools)))


def about(call: JudgeCall) -> str:
    """Return which turns a call is about, in words, empty where that is not known."""
    if call.first_turn is None or call.last_turn is None:
        return ""
    return turn_span(range(call.first_turn, to_number(call.last_turn)))


def facts(call: JudgeCall) -> list[tuple[str, str]]:
    """Return who answered, when, and what it took."""
    found = [("model", safe(call.model))]
    if call.trial:
        found.append(("repetition", str(to_number(call.trial))))
    if call.usage is not None:
        found.append(("used", in_words(call.usage)))
        if call.usage.calls > 1:
            found.append(("requests", f"{call.usage.calls:,}"))
    if mode := call.applied.get("mode"):
        found.append(("asked for by", safe(str(mode))))
    if read := call.applied.get("read"):
        found.append(("read after", safe(str(read))))
    if call.asked_at is not None:
        found.append(("answered", f"{day(call.asked_at)}, {clock(call.asked_at)}"))
        found.append(("from the cache", "yes: nothing was spent for this score" if call.cached else "no"))
    return found


def exchange_lines(exchange: JudgeExchange) -> Group:
    """Return an exchange for the terminal: each call with its request and its reply in full."""
    return Group(*_lines(exchange))


def _lines(exchange: JudgeExchange) -> Iterator[RenderableType]:
    if exchange.missing or not exchange.calls:
        yield Text(f"What the judge of {safe(exchange.grader)} was asked cannot be shown: {safe(exchange.missing)}")
    for number, call in enumerate(exchange.calls):
        where = f", {about(call)}" if about(call) else ""
        yield Text(f"── call {to_number(number)} of {len(exchange.calls)}{where}", style="dim")
        yield Text(" · ".join(f"{what} {much}" for what, much in facts(call)), style="dim")
        for message in (*call.messages, *call.repair):
            yield Labelled(Text(f"{message.role:>9}  ", style="bold"), Text(safe(asked_text(message))))
        reply = "no reply is stored: this call failed" if call.text is None else safe(replied_text(call))
        yield Labelled(Text(f"{'reply':>9}  ", style="bold cyan"), Text(reply))
