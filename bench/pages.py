"""The platform on 140,000 scored samples in both databases: pages, filters, search, a comparison, and many viewers."""

from __future__ import annotations

import asyncio
import gzip
import http.client
import itertools
import json
import math
import multiprocessing
import random
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from playwright.sync_api import sync_playwright
from replay import WORDS
from sqlalchemy import Connection, func, insert, literal, select

from vivavoce.messages import AIMessage, HumanMessage
from vivavoce.records.run import Attempt, AttemptKey, Grading, Outcome, Run
from vivavoce.records.score import Failure, Score, Usage, failed, mean_of_turns
from vivavoce.records.trajectory import Trajectory, Turn
from vivavoce.run.summary import Summary, summarise, tally
from vivavoce.store.database.schema import attempts, gradings, runs, sample_index, scores, turns
from vivavoce.store.store import Store

sys.path.append(str(Path(__file__).parents[1] / "tests" / "store"))
from postgresql import server

SMALL, EACH, LARGE, LONG = 1000, 100, 20_000, 1000
"""Small runs, the samples of each, those of a large run, and the turns of the long conversation."""
RARE = 500
"""One conversation in so many has the word that is rare."""
VIEWERS, EVERY, SECONDS, PACE, SCORES = 50, 2, 20, 1100, 5
"""Viewers, the seconds from one page of theirs to the next, how long they look, the scores a second that are written
meanwhile, and those of one conversation."""
COLUMNS = ("goal", "polite", "turns", "seconds", "tokens", "cost", "trial", "target", "tag")
SEARCHES = (
    "zebra",
    "refund order",
    "refund suite:large",
    "role:assistant refund",
    "role:user nowhere",
    "tag:slow refund",
    "tag:unknown refund",
    "state:fail",
    "target:bot zebra -refund",
)
COPIES, ASKED_OF_A_MILLION = 43, 150
"""Copies of a large run that make a million conversations, and the milliseconds asked of a page then."""
PAGE, PAINTED = 150_000, 200
"""The bytes that a page may weigh on its way, and the milliseconds until a long conversation begins to be drawn."""
MAX_SECONDS = 3
"""Seconds that one page is measured for, at most."""
SAMPLE = json.dumps({"id": "x", "input": "Where is my order, please? It was to come last week.", "tags": ["slow"]})
BROKEN = Failure(blame="target", kind="timeout", message="no answer within 5 s")


def outcome(draw: random.Random, number: int, turns: int = 2) -> Outcome:
    """Return a conversation with five scores: a judged one that sometimes breaks, each turn, and the reward."""
    conversations = [
        Turn(
            index=index,
            messages=[
                HumanMessage(content=" ".join(draw.choices(WORDS, k=15))),
                AIMessage(content=" ".join(draw.choices(WORDS, k=25)) + (" zebra" if number % RARE == 7 else "")),
            ],
            seconds=0.5,
            usage=Usage(input_tokens=draw.randrange(2000), output_tokens=60, calls=1, cost=draw.random() / 100),
        )
        for index in range(turns)
    ]
    attempt = Attempt(
        key=AttemptKey(f"sample-{number:05}", "bot", 0),
        scenario=f"{number:064x}",
        sample=SAMPLE,
        trajectory=Trajectory(turns=conversations, seconds=draw.expovariate(0.5)),
        started_at=1.7e9 + number,
        position=number,
    )
    goal = min(1.0, round(draw.random() * 1.4, 2))
    text = " ".join(draw.choices(WORDS, k=20))
    judged = failed(BROKEN) if number % 50 == 3 else Score(value=goal, raw=goal, reason=text)
    polite = mean_of_turns([Score(turn=turn, value=float(draw.random() < 0.95)) for turn in range(turns)])
    reward = failed(BROKEN) if judged.state == "error" else Score(value=goal)
    return Outcome(attempt=attempt, scores={"goal": judged, "polite": polite}, reward=reward)


def add(
    store: Store, name: str, suite: str, at: float, outcomes: Sequence[Outcome], summary: Summary | None = None
) -> Summary:
    """Store a finished run and return its summary, which is that of any run with the same outcomes."""
    run = Run(id=name, suite=suite, spec={}, base="/", started_at=at, version="1")
    grading = Grading(id=f"{name}-g1", run_id=name, spec={}, fingerprints={"goal": "f", "polite": "f"}, created_at=at)
    store.add_run(run)
    store.add_grading(grading)

    async def write() -> None:
        async with store.writer(name, grading.id, grading.fingerprints) as writer:
            for outcome in outcomes:
                await writer.put(outcome)

    asyncio.run(write())
    summary = summary or summarise(tally(store.scores(grading.id)), attempts=len(outcomes), failed=0, gate=None)
    store.update_grading(
        grading.model_copy(update={"summary": summary.model_dump(mode="json"), "finished_at": at + 60})
    )
    store.update_run(run.model_copy(update={"status": "finished", "finished_at": at + 60}))
    return summary


def build(store: Store) -> None:
    """Write what is measured, through the writer that a run has."""
    draw = random.Random(5)
    rows = [[outcome(draw, number) for number in range(EACH)] for _ in range(10)]
    known: dict[int, Summary] = {}
    for number in range(SMALL):
        kind = number % len(rows)
        at, summary = 1.7e9 + 3600 * number, known.get(kind)
        known[kind] = add(store, f"run-{number:04}", f"suite {number % 8}", at, rows[kind], summary)
    for name in ("large-a", "large-b"):
        add(store, name, "large", 1.8e9 + ord(name[-1]), [outcome(draw, number) for number in range(LARGE)])
    add(store, "long", "long", 1.9e9, [outcome(draw, 0, LONG)])
    store.index_pending()


def build_store(address: str) -> float:
    """Build a store, and return how many seconds that took; a process of its own."""
    started = time.perf_counter()
    with Store.open(address) as store:
        build(store)
    return time.perf_counter() - started


@contextmanager
def serving(address: str) -> Generator[str]:
    """Run the server in a process of its own, and give where it listens."""
    command = [Path(sys.executable).with_name("viva"), "serve", "--port", "0", "--workers", "2", "--store", address]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        try:
            line = process.stderr.readline()
            match = re.search(r"http://\S+?(?=/ )", line)
            assert match is not None, line
            yield match[0]
        finally:
            process.terminate()
            process.stderr.read()


class Reader:
    """A client that keeps its connection."""

    def __init__(self, base: str) -> None:
        self._connection = http.client.HTTPConnection(urlsplit(base).netloc, timeout=120)

    def get(self, path: str) -> tuple[int, bytes]:
        """Fetch something; return the status and what came, as a browser unpacks it."""
        self._connection.request("GET", path, headers={"accept-encoding": "gzip"})
        reply = self._connection.getresponse()
        body = reply.read()
        return reply.status, gzip.decompress(body) if reply.getheader("content-encoding") == "gzip" else body

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


def share(times: Sequence[float], part: float) -> float:
    """Return the time in which this part of the requests was answered, in milliseconds."""
    return 1000 * sorted(times)[math.ceil(part * len(times)) - 1]


def measure(reader: Reader, what: str, limit: int, paths: Iterator[str], times: int = 20) -> None:
    """Print how long something takes and weighs: the first time, at the median, and of 20 the slowest but one."""
    took: list[float] = []
    weight = 0
    for path in itertools.islice(paths, times):
        if sum(took) > MAX_SECONDS:
            break
        started = time.perf_counter()
        status, body = reader.get(path)
        took.append(time.perf_counter() - started)
        if status != 200:
            print(f"  {what:<44} answers {status}")
            return
        weight = max(weight, len(gzip.compress(body, 6)))
    middle, late = share(took, 0.5), share(took, 0.95)
    miss = "  MISSED" if late > limit or (weight > PAGE and not what.startswith("API")) else ""
    print(
        f"  {what:<44} {1000 * took[0]:8.1f} {middle:8.1f} {late:8.1f} ms  ≤ {limit:<4} {weight / 1000:6.1f} KB{miss}",
        flush=True,
    )


def far(reader: Reader, sort: str, pages: int) -> str:
    """Return the place so many pages of 500 samples into a large run."""
    place = ""
    for _ in range(pages):
        after = f"&after={place}" if place else ""
        _, body = reader.get(f"/api/v1/runs/large-a/samples?limit=500&sort={quote(sort)}{after}")
        place = json.loads(body)["next"]
    return place


def small(path: str) -> Iterator[str]:
    """Yield the address of one small run after another."""
    return (path.format(f"run-{number % SMALL:04}") for number in itertools.count(0, 37))


def look(reader: Reader, least: int = 0) -> None:
    """Print what each page takes beside what was asked, which is `least` or more."""

    def time_requests(what: str, limit: int, paths: Iterator[str], times: int = 20) -> None:
        measure(reader, what, max(limit, least), paths, times)

    same: Callable[[str], Iterator[str]] = itertools.repeat
    run, text = "/runs/large-a", "/runs/large-a/samples"
    print(f"  {'':<44} {'first':>8} {'p50':>8} {'p95':>8}     asked  gzipped ≤ 150")
    time_requests("runs", 50, same("/"))
    second = re.search(r'href="([^"]*after=[^"]*)"', reader.get("/")[1].decode())
    time_requests("runs, the second page", 50, same(unescape(second[1]) if second else "/none"))
    time_requests("runs of a suite", 50, same("/?suite=suite+3"))
    time_requests("runs, a part of a name", 100, same("/?q=RUN-05"))
    time_requests("run of 100", 50, small("/runs/{}"))
    time_requests("run of 20,000", 50, same(run))
    for sort in ("-worst", "position", "goal", "-goal", "polite", "turns", "-seconds", "-tokens", "-cost", "trial"):
        time_requests(f"  sorted by {sort}", 50, same(f"{run}?sort={sort}"))
    for sort in ("worst", "position", "goal"):
        time_requests(f"  {sort}, 15,000 in", 50, same(f"{run}?sort={sort}&after={far(reader, sort, 30)}"))
    for name in (
        "goal<0.3",
        "worst<1",
        "state:error",
        "state:pass",
        "state:fail",
        "-state:skipped",
        "turns>=2 seconds>4",
        "cost>0.019 tokens>1000",
        "cause:timeout",
        "sample:sample-0777*",
        "tag:slow",
        'text:"refund"',
        'text:"zebra"',
        'text:"nowhere"',
        'goal<0.5 text:"refund order" -state:error',
    ):
        time_requests(f"  filter {name}", 100, same(f"{run}?filter={quote(name)}"))
    time_requests("  all columns", 50, same(f"{run}?" + "&".join(f"columns={column}" for column in COLUMNS)))
    for by in ("tag", "target", "trial"):
        time_requests(f"  groups by {by}", 50, same(f"{run}?group={by}"))
    time_requests("  distributions", 50, same(f"{run}?histograms=1"))
    for name in SEARCHES:
        time_requests(f"search {name}", 100, same(f"/search?q={quote(name)}"))
    time_requests("conversation of a run of 100", 50, small("/runs/{}/samples/sample-00042"))
    time_requests("conversation, first of 20,000", 50, same(f"{text}/sample-00000"))
    time_requests("conversation, middle of 20,000", 50, same(f"{text}/sample-10000"))
    time_requests("conversation of 1,000 turns", 200, same("/runs/long/samples/sample-00000"))
    time_requests("  from turn 801", 200, same("/runs/long/samples/sample-00000?from=801"))
    for path in ("/compare", "/compare?a=run-0001&b=run-0009", "/trends", "/trends?suite=suite+3", "/label", "/jobs"):
        time_requests(path, 50, same(path))
    time_requests("/compare of two of 20,000", 500, same("/compare?a=large-a&b=large-b"), 5)
    time_requests("API: compare two of 20,000", 500, same("/api/v1/comparisons?a=large-a&b=large-b"), 5)
    time_requests("API: runs", 50, same("/api/v1/runs"))
    time_requests("API: samples", 50, same("/api/v1/runs/large-a/samples"))
    time_requests("API: errors", 50, same("/api/v1/runs/large-a/errors"))


def paint(base: str) -> None:
    """Print when a browser begins to draw the longest conversation, opened from the page of its run."""
    program = shutil.which("chromium-headless-shell") or shutil.which("chromium")
    took: list[float] = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-gpu"])
        for _ in range(12):
            page = browser.new_context(viewport={"width": 1280, "height": 900}).new_page()
            page.goto(f"{base}/runs/long", wait_until="networkidle")
            page.goto(f"{base}/runs/long/samples/sample-00000", wait_until="networkidle")
            took.append(page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime") / 1000)
            page.context.close()
        browser.close()
    middle, late = share(took, 0.5), share(took, 0.95)
    miss = "  MISSED" if middle > PAINTED else ""
    what = "first paint of 1,000 turns in a browser"
    print(f"  {what:<44} {1000 * took[0]:8.1f} {middle:8.1f} {late:8.1f} ms  ≤ {PAINTED}{miss}", flush=True)


def write(address: str, name: str, stop: float) -> None:
    """Write a run at a steady pace until a time; a process of its own."""

    async def go(store: Store) -> int:
        draw = random.Random(9)
        outcomes = [outcome(draw, number) for number in range(200)]
        async with store.writer(name, f"{name}-g1", {}) as writer:
            began, number = time.time(), 0
            while time.time() < stop:
                sample_outcome = outcomes[number % len(outcomes)]
                key = AttemptKey(f"live-{number:05}", "bot", 0)
                await writer.put(
                    sample_outcome.model_copy(
                        update={"attempt": sample_outcome.attempt.model_copy(update={"key": key})}
                    )
                )
                number += 1
                await asyncio.sleep(max(0.0, began + number * SCORES / PACE - time.time()))
        return number

    with Store.open(address) as store:
        store.add_run(Run(id=name, suite="large", spec={}, base="/", started_at=2e9, version="1"))
        store.add_grading(Grading(id=f"{name}-g1", run_id=name, spec={}, created_at=2e9))
        number = asyncio.run(go(store))
        there = store.counts(name)[0]
        scored = sum(1 for _ in store.scores(f"{name}-g1"))
        rate = number * SCORES / SECONDS
        lost = number - there + 3 * number - scored
        print(f"  written meanwhile: {rate:,.0f} scores/s (asked: ≥ 1,000), lost: {lost} (asked: 0)", flush=True)


def view(address: str, base: str) -> None:
    """Print how 50 viewers fare while a run writes."""
    paths = ("/", "/runs/large-a", "/runs/large-a?filter=goal%3C0.3", "/runs/run-0100", "/runs/live")
    paths = (*paths, "/runs/large-a/samples/sample-10000", '/runs/run-0500?filter=text:"refund"')
    took: list[float] = []
    wrong: list[str] = []
    stop = time.time() + SECONDS + 2

    def watch(number: int) -> None:
        reader, draw = Reader(base), random.Random(number)
        due = time.time() + EVERY * number / VIEWERS
        while due < stop:
            time.sleep(max(0.0, due - time.time()))
            due += EVERY
            path = draw.choice(paths)
            started = time.perf_counter()
            try:
                status, body = reader.get(path)
            except OSError as error:
                wrong.append(f"{path}: {error!r}")
                break
            took.append(time.perf_counter() - started)
            if status != 200:
                wrong.append(f"{path}: {status} {body[-200:]!r}")
        reader.close()

    writer = multiprocessing.get_context("spawn").Process(target=write, args=(address, "live", stop))
    writer.start()
    time.sleep(2)
    watching = [threading.Thread(target=watch, args=(number,)) for number in range(VIEWERS)]
    for one in watching:
        one.start()
    for one in watching:
        one.join()
    writer.join()
    assert writer.exitcode == 0, "the run broke"
    print(
        f"  {VIEWERS} viewers with a page every {EVERY} s: {len(took)} pages, p50 {share(took, 0.5):.0f} ms, "
        f"p95 {share(took, 0.95):.0f} ms (asked: ≤ 300), errors: {len(wrong)} (asked: 0) {wrong[:1] or ''}",
        flush=True,
    )


def enlarge(address: str) -> None:
    """Copy a large run in the database itself until there are a million conversations; copies cannot be searched."""
    with Store.open(address) as store:
        for number in range(COPIES):
            with store.database.writing() as connection:
                copy(connection, "large-a", f"copy-{number:02}")


def copy(connection: Connection, old: str, new: str) -> None:
    """Copy a run with its only set of scores; the numbers of its conversations follow those that are there."""
    mine = select(attempts.c.id).where(attempts.c.run_id == old)
    last = connection.execute(select(func.max(attempts.c.id))).scalar_one()
    after = last + 1 - connection.execute(select(func.min(mine.subquery().c.id))).scalar_one()
    for table, which, changed in (
        (runs, runs.c.id == old, {"id": new}),
        (gradings, gradings.c.run_id == old, {"id": f"{new}-g1"}),
        (attempts, attempts.c.run_id == old, {"id": attempts.c.id + after}),
        (turns, turns.c.attempt_id.in_(mine), {"attempt_id": turns.c.attempt_id + after}),
        (scores, scores.c.attempt_id.in_(mine), {"attempt_id": scores.c.attempt_id + after}),
        (sample_index, sample_index.c.grading_id == f"{old}-g1", {"attempt_id": sample_index.c.attempt_id + after}),
    ):
        known: dict[str, Any] = {"run_id": new, "grading_id": f"{new}-g1", **changed}
        columns = [column for column in table.c if table is not scores or column.name != "id"]
        values = [
            literal(value) if isinstance(value := known.get(column.name, column), str) else value for column in columns
        ]
        connection.execute(insert(table).from_select(columns, select(*values).where(which)))


def database(name: str, address: str, *, million: bool) -> None:
    """Measure one database."""
    print(f"{name}:", flush=True)
    if million:
        enlarge(address)
    with serving(address) as base:
        reader = Reader(base)
        look(reader, ASKED_OF_A_MILLION if million else 0)
        reader.close()
        paint(base)
        if not million:
            view(address, base)


def main() -> None:
    """Build both databases at once, and measure one after the other; with `million`, a larger one of each."""
    with tempfile.TemporaryDirectory() as folder, server(durable=True) as running, running.database() as address:
        stores = {"SQLite": f"{folder}/x.db", "PostgreSQL": address}
        with ProcessPoolExecutor(mp_context=multiprocessing.get_context("spawn")) as processes:
            for name, seconds in zip(stores, processes.map(build_store, stores.values()), strict=True):
                print(f"{name}: written, and read for search, in {seconds:.0f} s", flush=True)
        for name, address in stores.items():
            database(name, address, million="million" in sys.argv[1:])


if __name__ == "__main__":
    main()
