"""What the support desk adds to vivavoce: a format, a target, a metric, an exporter, and a command."""

from __future__ import annotations

from vivavoce.cli.output import StoreOption, store_of
from vivavoce.conversations.format import Format
from vivavoce.messages import AIMessage
from vivavoce.metrics import BaseMultiTurnMetric, MetricConfig, MetricResult
from vivavoce.report.export import Exporter
from vivavoce.store.store import Store

SPEAKERS = {"customer": "user", "agent": "assistant"}
COURTESIES = ("please", "thank", "sorry", "welcome")


def is_ticket(record):
    return record.fields is not None and {"ticket", "thread"} <= record.fields.keys()


def read_tickets(records, loss):
    for record in records:
        try:
            messages = [{"role": SPEAKERS[who], "content": text} for who, text in record.value["thread"]]
            row = {"id": record.value["ticket"], "messages": messages}
        except (KeyError, TypeError, ValueError):
            loss.broken("a ticket needs 'ticket' and a 'thread' of pairs: customer or agent, and the text")
        else:
            yield record.place, row


def write_tickets(rows, loss):
    names = {role: name for name, role in SPEAKERS.items()}
    for row in rows:
        thread = []
        for index, message in enumerate(row["messages"]):
            if message["role"] in names and isinstance(message["content"], str):
                thread.append([names[message["role"]], message["content"]])
            else:
                loss.dropped(f"a message of role '{message['role']}'", index)
        yield {"ticket": row.get("id"), "thread": thread}


TICKETS = Format("tickets", "Tickets of the support desk", is_ticket, read_tickets, write_tickets)


def canned(name: str, *, greeting: str = "Thank you for your message."):
    """A bot that answers every message alike."""

    def reply(message: str) -> str:
        return f"{greeting} You wrote: {message}"

    return reply


class Politeness(BaseMultiTurnMetric):
    """The share of replies with a word of courtesy."""

    def __init__(self, *, name: str = "politeness", threshold: float = 0.5) -> None:
        description = "share of replies with a word of courtesy"
        direction = "higher_is_better"
        super().__init__(MetricConfig(name=name, description=description, direction=direction, threshold=threshold))

    def evaluate_conversation(self, evaluation_input):
        replies = [message.text.lower() for message in evaluation_input.messages if isinstance(message, AIMessage)]
        if not replies:
            return self.skipped("nobody replies")
        polite = sum(any(word in reply for word in COURTESIES) for reply in replies)
        return MetricResult(score=polite / len(replies), reason=f"{polite} of {len(replies)} replies are polite")


def write_tsv(graded, out):
    for outcome in graded.outcomes():
        for name, score in outcome.scores.items():
            print(outcome.attempt.key.sample_id, name, score.state, score.value, sep="\t", file=out)


TSV = Exporter(write_tsv, ".tsv", "text/tab-separated-values; charset=utf-8")


def mean_politeness(store, run, grading=None):
    scores = [row.value for row in store.scores(store.grading(run, grading).id) if row.name == "politeness"]
    values = [value for value in scores if value is not None]
    return sum(values) / len(values) if values else None


def command(run: str = "latest", *, store: StoreOption = None) -> None:
    """Print the mean politeness of a run, which has a grader of this name."""
    with Store.open(store_of(store), create=False) as opened:
        mean = mean_politeness(opened, opened.run(run).id)
    print("the run has no grader 'politeness'" if mean is None else f"politeness: {mean:.2f}")
