"""Conversations judged in parts, by one process and with Ray, beside one run of one process: CPU and memory.

First what a part costs beyond its conversations, which `bench/parts.py overhead` prints alone. With Ray it needs
`make .venv-ray/ready`, and says so where that is missing. `bench/parts.py million` measures 1,000,000 short
conversations through two exact metrics with Ray alone instead, which takes minutes.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from vivavoce.features.parts.cluster import RayWorkers
from vivavoce.features.parts.job import Job, job_of, kept_job
from vivavoce.features.parts.pool import OneProcess, Pool, Progress, work_through
from vivavoce.features.parts.work import Allowance
from vivavoce.files.places import Folder
from vivavoce.pacing.loops import run as run_loop
from vivavoce.run.options import RunOptions
from vivavoce.store.store import Store
from vivavoce.suites.command_line import judging_suite
from vivavoce.suites.experiment import suite_run
from vivavoce.suites.load import Suite
from vivavoce.suites.metric_names import read_metrics
from vivavoce.testing import LoopbackServer

RAY = Path(__file__).parents[1] / ".venv-ray" / "bin" / "python"
JUDGED, MEASURED, MILLION = 20_000, 100_000, 1_000_000
WORKERS, LATENCY, AT_A_TIME = 2, 0.05, 64
FEW, BATCH, LARGE = 12_800, 64, 4_096
EXACT = "refusal,repetition"
TICK = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Found:
    """What some conversations took: seconds of all processors and by the clock, and the most memory in MB."""

    cpu: float
    wall: float
    memory: float


def write(path: Path, count: int) -> None:
    """Write short conversations, as Parquet where the name says so."""
    rows = (
        {
            "id": f"r{at}",
            "messages": json.dumps(
                [
                    {"role": "user", "content": f"Where is order {at}? I have waited for it since Monday."},
                    {"role": "assistant", "content": f"Order {at} has left our house and comes tomorrow, I am sorry."},
                ]
            ),
        }
        for at in range(count)
    )
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pa.schema([("id", pa.string()), ("messages", pa.string())])
    with pq.ParquetWriter(path, schema) as writer:
        while some := [row for row, _ in zip(rows, range(50_000), strict=False)]:
            writer.write_table(pa.Table.from_pylist(some, schema=schema))


def processes(of_ray: bool) -> Iterator[Path]:
    """Yield this process and, if asked for, those of Ray."""
    yield Path("/proc/self")
    for path in Path("/proc").glob("[0-9]*") if of_ray else ():
        try:
            content = (path / "cmdline").read_bytes()
        except OSError:
            continue
        if b"ray::" in content or b"/ray/" in content:
            yield path


def cpu(of_ray: bool) -> float:
    """Return the seconds of processors that these processes have used."""
    used = 0.0
    for path in processes(of_ray):
        try:
            fields = (path / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        used += (int(fields[11]) + int(fields[12])) / TICK
    return used


def memory(of_ray: bool) -> float:
    """Return the memory of these processes in MB, with their share of what they have in common."""
    result = 0.0
    for path in processes(of_ray):
        try:
            lines = (path / "smaps_rollup").read_text().splitlines()
        except OSError:
            continue
        result += sum(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1024
    return result


def measure_work(work: Callable[[Callable[[], None]], None], *, of_ray: bool = False) -> Found:
    """Return what some work takes, beyond what there was before; it says now and then when to look.

    Processes of Ray are gone when the work is over, so what they used is what was seen last.
    """
    idle, began, clock = memory(of_ray), cpu(of_ray), time.perf_counter()
    most, used = [0.0], [0.0]

    def look() -> None:
        most[0] = max(most[0], memory(of_ray) - idle)
        used[0] = max(used[0], cpu(of_ray) - began)

    work(look)
    look()
    return Found(used[0], time.perf_counter() - clock, most[0])


def in_one_piece(suite: Suite, folder: Path) -> Found:
    def work(look: Callable[[], None]) -> None:
        del look
        with Store.open(str(folder / "one.db")) as store:
            run_loop(suite_run(suite, RunOptions(), store=store).execute())

    return measure_work(work)


def in_parts(job: Job, pool: Pool, *, of_ray: bool) -> Found:
    def work(look: Callable[[], None]) -> None:
        progress = Progress(len(job.parts))
        work_through(job.parts, pool, Allowance(pool.size), progress, lambda _: look())
        assert len(progress.done) == len(job.parts)

    return measure_work(work, of_ray=of_ray)


def print_figure(name: str, figure: Found, count: int, beside: Found | None = None) -> None:
    ratio = "" if beside is None else f", {figure.cpu / beside.cpu:.2f} × one process (asked: at most 1.5)"
    each = f"{figure.cpu / count * 1e3:.3f} ms of processors a conversation"
    print(f"{name:<24}{each}, {count / figure.wall:,.0f} a second, {figure.memory:,.0f} MB more{ratio}", flush=True)


def suite_of(path: Path, metrics: str, judge: str | None) -> Suite:
    return judging_suite(path, read_metrics(metrics), judge, name="bench", max_concurrent=AT_A_TIME)


def job(suite: Suite, path: Path, folder: Path, count: int, rows: int | None = None) -> Job:
    rows = rows or max(BATCH, min(4_096, count // (4 * WORKERS)))
    return kept_job(Folder(str(folder)), job_of(suite, [str(path)], RunOptions(), rows=rows))


def with_ray(path: Path, folder: Path, metrics: str, judge: str | None, count: int, rows: int | None = None) -> Found:
    """Measure with Ray, whose start is left out; called in its own environment."""
    place = folder / f"ray-{rows or 0}"
    result = job(suite_of(path, metrics, judge), path, place, count, rows)
    pool = RayWorkers(result, Folder(str(place)), place / "scratch", WORKERS)
    pool.processes()
    return in_parts(result, pool, of_ray=True)


def ray_apart(arguments: Sequence[str]) -> Found | None:
    if not RAY.exists():
        print("with Ray: run `make .venv-ray/ready` first")
        return None
    output = subprocess.run([RAY, __file__, "ray", *arguments], stdout=subprocess.PIPE, text=True, check=True).stdout
    return Found(*json.loads(output.splitlines()[-1]))


def compare(title: str, count: int, metrics: str, judge: str | None, *, one: bool = True) -> None:
    print(f"{title}: {count:,} conversations")
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        path = folder / "talks.parquet"
        write(path, count)
        whole = None
        if one:
            whole = in_one_piece(suite_of(path, metrics, judge), folder)
            print_figure("one process", whole, count)
            alone = job(suite_of(path, metrics, judge), path, folder / "parts", count)
            pool = OneProcess(alone, Folder(str(folder / "parts")), folder / "scratch")
            print_figure("parts, one process", in_parts(alone, pool, of_ray=False), count, whole)
        if (result := ray_apart([str(path), made, metrics, judge or "", str(count)])) is not None:
            print_figure(f"parts, Ray, {WORKERS} workers", result, count, whole)


def overhead() -> None:
    """Print what a part costs beyond its conversations: as many of them in parts of 64 rows, and in large ones."""
    small, large = FEW // BATCH, -(-FEW // LARGE)
    print(f"a part beyond its conversations: {FEW:,} in {small} parts, and in {large}")
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        path = folder / "talks.parquet"
        write(path, FEW)
        figures: dict[int, Found] = {}
        for rows in (BATCH, LARGE):
            alone = job(suite_of(path, EXACT, None), path, folder / str(rows), FEW, rows)
            pool = OneProcess(alone, Folder(str(folder / str(rows))), folder / "scratch")
            figures[rows] = in_parts(alone, pool, of_ray=False)
        cost("one process", figures[BATCH], figures[LARGE], small - large)
        of_ray = [ray_apart([str(path), made, EXACT, "", str(FEW), str(rows)]) for rows in (BATCH, LARGE)]
        if of_ray[0] is not None and of_ray[1] is not None:
            cost(f"Ray, {WORKERS} workers", of_ray[0], of_ray[1], small - large)


def cost(name: str, parts: Found, whole: Found, more: int) -> None:
    """Print what one part more costs, and how much of that falls on 64 conversations of a part of the usual size."""
    cpu, wall = ((a - b) / more * 1e3 for a, b in ((parts.cpu, whole.cpu), (parts.wall, whole.wall)))
    each = cpu * BATCH / LARGE
    print(f"{name:<24}{cpu:.0f} ms of processors, {wall:.0f} ms by the clock", end="; ")
    print(f"{each:.1f} ms for {BATCH} of {LARGE:,} conversations (asked: at most 5)", flush=True)


def fine(body: object) -> dict[str, object]:
    del body
    return {"reasoning": "Fine.", "confidence": 1, "violations": []}


def main(arguments: Sequence[str]) -> None:
    if arguments[:1] == ["ray"]:
        path, folder, metrics, judge, count, *rows = arguments[1:]
        figure = with_ray(Path(path), Path(folder), metrics, judge or None, int(count), *map(int, rows))
        print(json.dumps([figure.cpu, figure.wall, figure.memory]))
        return
    if arguments[:1] == ["million"]:
        compare("two exact metrics", MILLION, EXACT, None, one=False)
        return
    if arguments[:1] == ["serve"]:
        with LoopbackServer(fine, delay=LATENCY) as server:
            print(server.base_url, flush=True)
            sys.stdin.read()
        return
    overhead()
    if arguments[:1] == ["overhead"]:
        return
    compare("two exact metrics", MEASURED, EXACT, None)
    with subprocess.Popen(
        [sys.executable, __file__, "serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as server:
        assert server.stdout is not None
        address = server.stdout.readline().strip()
        compare(f"a judge that takes {LATENCY * 1e3:.0f} ms", JUDGED, "safety", f"{address}#judge")
        assert server.stdin is not None
        server.stdin.close()


main(sys.argv[1:])
