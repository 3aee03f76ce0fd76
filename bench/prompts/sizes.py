"""Says how large the prompts are, and how much of what judges read of a conversation is the same for all of them.

    python bench/prompts/sizes.py --n 100

The conversations are those of tau-bench, once as recorded, with the policy as a system message, and once without it.
Shared is what stands before the task, in requests of the goal, the contract, a guard, a metric of quality and the
review of the tester. Tokens are characters divided by four.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from sets import rows

from vivavoce.messages import AnyMessage, read_messages
from vivavoce.metrics.factory import create_metric, metrics
from vivavoce.metrics.judging import JudgedMetric
from vivavoce.metrics.metric import evaluation_input
from vivavoce.metrics.types import Reading
from vivavoce.models.structured import wire_schema
from vivavoce.penelope.review import TesterReview
from vivavoce.testing import ScriptedModel

CHARACTERS_PER_TOKEN = 4
MUST, MUST_NOT = ("ask for a yes before it changes a booking",), ("promise a refund that the rules exclude",)
OPTIONS: dict[str, dict[str, Any]] = {
    "aspect_critic": {"definition": "It is polite."},
    "guidelines": {"guidelines": ["Be kind."]},
    "rubrics_score": {"rubrics": {"score1_description": "bad", "score2_description": "good"}},
    "simple_criteria": {"criteria": "How kind is it?"},
    "topic_adherence": {"topics": ["flights"]},
}
SHORT = [
    {"role": "user", "content": "Cancel my booking A17, please."},
    {"role": "assistant", "content": "Done, A17 is cancelled."},
]


def share_prefixes(conversations: Sequence[tuple[str, Sequence[AnyMessage]]]) -> None:
    """Print, for each role, the tokens of a request, and the part of all that is the same for all roles."""
    model = ScriptedModel([])
    by_name = {
        name: create_metric(name, model=model) for name in ("goal_achievement", "contract", "safety", "coherence")
    }
    judges = {**by_name, "tester_review": TesterReview(model)}
    before, after = dict.fromkeys(judges, 0), dict.fromkeys(judges, 0)
    for goal, messages in conversations:
        reading = Reading(evaluation_input(messages, goal=goal, must=MUST, must_not=MUST_NOT))
        goal_alone = reading.knowing(must=(), must_not=())
        texts: list[str] = []
        for name, metric in judges.items():
            assert isinstance(metric, JudgedMetric)
            (question,) = metric.questions(goal_alone if name == "goal_achievement" else reading)
            text = "".join(message.text for message in question.request.messages)
            texts.append(text[: -len(question.task)])
            before[name] += len(texts[-1])
            after[name] += len(question.task)
        assert len(set(texts)) == 1, "all begin with the same"
    count = len(conversations) * CHARACTERS_PER_TOKEN
    for name in judges:
        print(f"{name:20} conversation {before[name] / count:6,.0f}  task {after[name] / count:5,.0f}")
    whole = sum(before.values()) + sum(after.values())
    print(f"{'shared by all':20} {sum(before.values()) / whole:.1%} of what they read\n")


def prompts() -> None:
    """Print the size of the task and of the schema of each judged metric, for a conversation of one turn."""
    messages = read_messages(SHORT) or []
    reading = Reading(evaluation_input(messages, goal="A17 is cancelled", must=MUST, must_not=MUST_NOT))
    for name in sorted(metrics.names()):
        if not metrics.get(name).judged:
            continue
        metric = create_metric(name, model=ScriptedModel([]), **OPTIONS.get(name, {}))
        if isinstance(metric, JudgedMetric) and (questions := metric.questions(reading)):
            request = questions[0].request
            assert request.schema is not None
            task, schema = len(questions[0].task), len(str(wire_schema(request.schema)))
            print(f"{name:26} task {task / 4:5,.0f}  schema {schema / 4:5,.0f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--n", type=int, default=100)
    chosen = rows("tau_bench", parser.parse_args().n)
    conversations = [(row["goal"], read_messages(row["messages"]) or []) for row in chosen]
    print("tokens of a request, with the policy in the conversation")
    share_prefixes(conversations)
    print("the same without it")
    share_prefixes(
        [(goal, [message for message in messages if message.role != "system"]) for goal, messages in conversations]
    )
    print("tokens of each prompt")
    prompts()


if __name__ == "__main__":
    main()
