"""Workers on Ray, on this machine or in a cluster, through the extra `[ray]`.

Each worker is an actor, a process that works on one part at a time. Rows do not travel: a worker reads those of its
part itself. Nor do results: it writes the file of its part. Ray says which worker is free, and which one has died.
"""

from __future__ import annotations

import io
import os
import socket
import sys
import threading
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from vivavoce.errors import UsageError
from vivavoce.features.parts.job import Job, Part
from vivavoce.features.parts.pool import Ended
from vivavoce.features.parts.work import Share, Worked, Worker
from vivavoce.files.frames import load_extra
from vivavoce.files.places import Folder


class _OfOneThread(io.TextIOWrapper):
    """A stream that takes text from the thread that made it, and drops what others write."""

    def __init__(self, descriptor: int) -> None:
        self._thread = threading.get_ident()
        file = io.FileIO(descriptor, "w", closefd=False)
        super().__init__(io.BufferedWriter(file), encoding="utf-8", errors="replace", write_through=True)

    def write(self, text: str, /) -> int:
        """Write a text."""
        return len(text) if threading.get_ident() != self._thread else super().write(text)


@contextmanager
def quiet_errors() -> Generator[None]:
    """Drop what other threads, and processes that are started meanwhile, write to standard error.

    The thread that begins this still writes there.
    """
    sys.stderr.flush()
    kept = os.dup(2)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    os.close(nowhere)
    before = sys.stderr
    own = _OfOneThread(kept)
    sys.stderr = own
    try:
        yield
    finally:
        own.flush()
        sys.stderr = before
        os.dup2(kept, 2)
        os.close(kept)


_ANSWERS = 5.0
"""Seconds in which a cluster has to answer."""
_LOOK = 1.0
"""Seconds after which a signal is heeded, while nothing comes from the workers."""


def _check_answers(address: str) -> None:
    """Refuse the address of a cluster where nobody answers; Ray itself would try for minutes."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not port.isdecimal():
        return
    try:
        socket.create_connection((host, int(port)), timeout=_ANSWERS).close()
    except OSError as error:
        why = error.strerror or str(error)
        raise UsageError(f"--ray-address {address}: no Ray cluster answers there: {why}") from error


class Actor:
    """A worker as Ray holds it, in a process of its own."""

    def __init__(self, job: str, folder: str, scratch: str) -> None:
        self._worker = Worker(Job.model_validate_json(job), Folder(folder), Path(scratch))

    def work_on(self, part: Part, share: Share) -> Worked | str:
        """Work on a part; a text says what is wrong with the suite."""
        try:
            return self._worker.work_on(part, share)
        except UsageError as error:
            return str(error)

    def process(self) -> int:
        """Return the number of its process."""
        return os.getpid()


class RayWorkers:
    """`size` workers of a Ray cluster at an address, or of one that is begun here; by default one for each processor.

    There are never more than the job may have. With `quiet`, Ray and its processes write nothing to standard error.

    Raises:
        UsageError: there is no cluster at the address. MissingExtra: Ray is not installed.
    """

    def __init__(
        self,
        job: Job,
        folder: Folder,
        scratch: Path,
        size: int | None = None,
        address: str | None = None,
        *,
        quiet: bool = False,
    ) -> None:
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        self._ray = load_extra("ray", "working on Ray", "ray")
        self._begun = not self._ray.is_initialized()
        self._quiet = ExitStack()
        if quiet:
            self._quiet.enter_context(quiet_errors())
        try:
            if self._begun:
                self._begin(size, address)
            self._start_workers(job, folder, scratch, size)
        except BaseException:
            self._quiet.close()
            raise

    def _start_workers(self, job: Job, folder: Folder, scratch: Path, size: int | None) -> None:
        processors = max(1, int(self._ray.cluster_resources().get("CPU", 1)))
        self.size = min(size or processors, job.most_workers)
        self._arguments = (job.model_dump_json(), folder.place, str(scratch))
        self._free = [self._actor() for _ in range(self.size)]
        self._working: dict[Any, tuple[Any, Part, Share]] = {}

    def _begin(self, size: int | None, address: str | None) -> None:
        if address is not None:
            _check_answers(address)
        quiet = {"include_dashboard": False, "num_cpus": size} if address is None else {}
        try:
            self._ray.init(address=address or "local", log_to_driver=False, logging_level="ERROR", **quiet)
        except (ConnectionError, ValueError, RuntimeError) as error:
            why = f"{str(error).splitlines()[0]}; a cluster that asks for a token takes the one in RAY_AUTH_TOKEN"
            raise UsageError(f"--ray-address {address}: {why}") from error

    def _actor(self) -> Any:
        return self._ray.remote(num_cpus=1, max_restarts=0)(Actor).remote(*self._arguments)

    def begin(self, part: Part, share: Share) -> None:
        """Give a part to a worker that is free."""
        actor = self._free.pop()
        self._working[actor.work_on.remote(part, share)] = (actor, part, share)

    def wait(self) -> Ended:
        """Wait until a worker is done with its part.

        Raises:
            UsageError: the suite is wrong.
        """
        ready: list[Any] = []
        while not ready:
            ready, _ = self._ray.wait(list(self._working), num_returns=1, timeout=_LOOK)
        actor, part, share = self._working.pop(ready[0])
        try:
            worked: Worked | str = self._ray.get(ready[0])
        except self._ray.exceptions.RayTaskError:
            raise
        except self._ray.exceptions.RayError as error:
            self._free.append(self._actor())
            return Ended(part, share, died=(str(error).splitlines() or [type(error).__name__])[0])
        self._free.append(actor)
        if isinstance(worked, str):
            raise UsageError(worked)
        return Ended(part, share, worked)

    def processes(self) -> list[int]:
        """Return the numbers of the processes of the workers that are free."""
        return self._ray.get([actor.process.remote() for actor in self._free])

    def close(self) -> None:
        """End the workers; a cluster that was begun here ends, too."""
        with self._quiet:
            self._end()

    def _end(self) -> None:
        for actor in [*self._free, *(actor for actor, _, _ in self._working.values())]:
            self._ray.kill(actor)
        if self._begun:
            self._ray.shutdown()
