"""How many files and connections this process may have open, and how many conversations at a time that allows."""

from __future__ import annotations

import errno
import os
from contextlib import suppress

WANTED_HANDLES = 4_096
"""Handles that a process asks for when it starts, where the system lets it have them."""

HANDLES_OF_PROCESS = 24
"""Handles that a process needs for itself: streams, the store, the event loop, and files that it reads for a moment."""

HANDLES_PER_CONVERSATION = 2
"""Handles of a conversation at a time: one connection to a target or judge, and one to the store."""


def handle_limit() -> int | None:
    """Return how many files and connections this process may have open, None where nothing limits them."""
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return None
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return None if soft == resource.RLIM_INFINITY else soft


def raise_handle_limit() -> None:
    """Raise the limit of this process to what it wants, as far as the system allows."""
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = WANTED_HANDLES if hard == resource.RLIM_INFINITY else min(WANTED_HANDLES, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with suppress(ValueError, OSError):  # some systems allow less than they say
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def affordable(concurrency: int) -> int:
    """Return how many conversations, of those wanted, this process has handles for at a time; at least 1."""
    limit = handle_limit()
    if limit is None:
        return concurrency
    return max(1, min(concurrency, (limit - HANDLES_OF_PROCESS) // HANDLES_PER_CONVERSATION))


def has_free_handle() -> bool:
    """Return whether another file can be opened now."""
    try:
        os.close(os.open(os.devnull, os.O_RDONLY))
    except OSError as error:
        return error.errno not in (errno.EMFILE, errno.ENFILE)
    return True


def too_few_handles() -> str:
    """Return what to do where no other file can be opened."""
    return f"too many files are open (limit {handle_limit()}); raise it with ulimit -n, or lower --max-concurrent"


def few_handles_note(concurrency: int) -> str | None:
    """Return a note if this process has too few handles for these conversations at a time, else None."""
    fewer = affordable(concurrency)
    if fewer == concurrency:
        return None
    times = "1 conversation runs" if fewer == 1 else f"{fewer} conversations run"
    return f"only {handle_limit()} files may be open at a time, so at most {times} at a time; see ulimit -n"
