"""`viva compare realism`: how often it tells alike users apart, how often it sees a difference, and how long it takes.

`python bench/realism.py`: users of one kind are written by a program and dealt out to two sides, so that every
difference that is found is a false alarm; at most 2.5% are asked of the classifier and 5% of the features together.
Then one side writes otherwise. Then, where `../shared/data` is there, halves of real sets of conversations, and a
simulated set beside those of people. Then 5,000 conversations are compared with 5,000.
"""

from __future__ import annotations

import json
import os
import random
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

from vivavoce.features.realism.measuring import Both
from vivavoce.features.realism.reading import UserSides, spoken_in_file
from vivavoce.features.realism.realism import Realism, realism
from vivavoce.features.realism.telling_apart import by_meaning
from vivavoce.features.realism.user_side import UserSide, user_side
from vivavoce.messages import AIMessage, AnyMessage, HumanMessage

SETS = 200
OF_MEANING = 100
WIDTH = 384
"""Numbers of a vector of the local embedder."""
MANY = 5000
DATA = Path(__file__).parents[2] / "shared" / "data"

WORDS = (
    *("order", "lamp", "chair", "refund", "box", "late", "broken", "blue", "small", "street", "account", "card", "the"),
    *("number", "again", "today", "week", "back", "send", "a", "my", "it", "is", "was", "for", "to", "of", "and", "on"),
    *("with", "that", "this", "not", "i", "we", "you", "from", "at", "in", "new", "old", "last", "first"),
)
OPENINGS = ("hi, ", "Hello, ", "hey ", "", "", "please ", "Can you ")


def make_messages(draw: random.Random, words: float) -> list[AnyMessage]:
    """Return a conversation of a user who writes so many words a message, more or less."""
    messages: list[AnyMessage] = []
    for _ in range(1 + min(9, int(draw.expovariate(0.35)))):
        number = max(1, round(draw.lognormvariate(np.log(words), 0.6)))
        text = draw.choice(OPENINGS) + " ".join(draw.choices(WORDS, k=number))
        text += draw.choice((".", "", "?", "!", " 4711", " thanks"))
        messages += [HumanMessage(content=text), AIMessage(content=" ".join(draw.choices(WORDS, k=12)) + "?")]
    return messages


def users(name: str, number: int, seed: int, words: float = 9.0) -> UserSides:
    """Return users who write so many words a message."""
    draw = random.Random(seed)
    sides = (user_side(f"{name}-{place}", make_messages(draw, words)) for place in range(number))
    return UserSides(name, [side for side in sides if side is not None])


def alarms(number: int, words: float = 9.0) -> str:
    """Return in which part of the sets the classifier, and any feature, tells the sides apart."""
    apart = differ = below = 0
    for seed in range(SETS):
        result = realism(users("a", number, 2 * seed, words), users("b", number, 2 * seed + 1), embedder="none")
        apart += result.apart[0].can_tell is True
        below += (result.apart[0].high or 1) < 0.5
        differ += any(feature.differs for feature in result.features)
    return f"classifier {apart / SETS:6.1%}   (below 50%: {below / SETS:.1%})   any feature {differ / SETS:6.1%}"


def alarms_of_meaning(number: int) -> str:
    """Return in which part of the sets a classifier with vectors that mean nothing tells alike sides apart."""
    apart = 0
    for seed in range(OF_MEANING):
        both = Both(users("a", number, 2 * seed), users("b", number, 2 * seed + 1))
        vectors = np.random.default_rng(seed).normal(size=(len(both.sides), WIDTH)) / np.sqrt(WIDTH)
        apart += by_meaning(both, np.ones(len(both.sides), dtype=bool), vectors).can_tell is True
    return f"classifier with vectors {apart / OF_MEANING:6.1%}"


def halves(users: UserSides) -> tuple[UserSides, UserSides]:
    """Return two halves of one set; what came of one sample stays together."""
    names = sorted({side.cluster for side in users.sides})
    random.Random(1).shuffle(names)
    first = set(names[: len(names) // 2])
    one: list[UserSide] = [side for side in users.sides if side.cluster in first]
    other = [side for side in users.sides if side.cluster not in first]
    return UserSides("one half", one), UserSides("the other half", other)


def line(what: str, realism: Realism) -> None:
    """Print what came out of a comparison."""
    figures = [
        f"{feature.by} {feature.right:.0%} [{feature.low:.0%}, {feature.high:.0%}]"
        for feature in realism.apart
        if feature.right is not None and feature.low is not None and feature.high is not None
    ]
    differ = len([feature for feature in realism.features if feature.differs])
    sizes = f"{realism.simulated.conversations:,} and {realism.real.conversations:,}"
    print(f"{what:44} {sizes:>15}   {'   '.join(figures)}   {differ} features differ")


def real_sets() -> None:
    """Compare halves of real sets, and a simulated one with those of people."""
    files = {
        "tau-bench airline (simulated)": DATA / "tau_bench_airline/sierra__gpt-4o__airline.jsonl",
        "Taskmaster (people)": DATA / "taskmaster4_reward/tm4_reward.jsonl",
        "Topical-Chat (people)": DATA / "usr_topicalchat/usr_topicalchat.jsonl",
        "MT-Bench-101": DATA / "mt_bench_101/mt_bench_101.jsonl",
    }
    sets = {name: spoken_in_file(path) for name, path in files.items()}
    for name, users in sets.items():
        line(f"halves of {name}", realism(*halves(users)))
    simulated, *others = sets.items()
    for name, users in others:
        line(f"{simulated[0].split(' (')[0]}, and {name}", realism(simulated[1], users))


def measure_speed(embedder: str) -> None:
    """Print how long a comparison of files takes, reading included."""
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / f"{name}.jsonl" for name in ("simulated", "real")]
        for seed, path in enumerate(paths):
            draw = random.Random(seed)
            rows = ({"id": str(place), "messages": dump_messages(make_messages(draw, 12.0))} for place in range(MANY))
            path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        processor, wall = time.process_time(), time.perf_counter()
        realism(*(spoken_in_file(path) for path in paths), embedder=embedder)
        seconds = time.process_time() - processor
        took = time.perf_counter() - wall
    print(
        f"{MANY:,} against {MANY:,}, embedder {embedder}: {seconds:.1f} s of the processor, {took:.1f} s; asked: 60 s"
    )


def dump_messages(messages: Sequence[AnyMessage]) -> list[dict[str, object]]:
    return [message.to_dict() for message in messages]


def main() -> None:
    """Print everything, or what is named: alarms, real, speed."""
    parts = sys.argv[1:] or ["alarms", "real", "speed"]
    if "alarms" in parts:
        print(f"alike users told apart, of {SETS} sets (asked: 2.5% and 5%)")
        for number in (25, 60, 200):
            print(f"  {number:4} against {number:4}   {alarms(number)}", flush=True)
        print(f"  {100:4} against {100:4}   {alarms_of_meaning(100)}", flush=True)
        print("users who write 12 words in place of 9 told apart")
        for number in (25, 60, 200):
            print(f"  {number:4} against {number:4}   {alarms(number, 12.0)}", flush=True)
    if "real" in parts:
        if DATA.is_dir():
            real_sets()
        else:
            print(f"no real sets: {DATA} is not there")
    if "speed" in parts:
        for embedder in ("none", "local"):
            measure_speed(embedder)


if __name__ == "__main__":
    main()
