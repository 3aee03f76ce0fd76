"""Conversations and suites of other projects: a folder beside this one, which is not part of the repository."""

from __future__ import annotations

from pathlib import Path

import pytest

RECORDINGS = Path(__file__).parents[2] / "shared" / "data"
NAMES = (
    *("bfcl_multi_turn/bfcl_multi_turn", "diasafety/diasafety", "mt_bench/questions", "mt_bench_101/mt_bench_101"),
    *("taskmaster4_reward/tm4_reward", "tau_bench_airline/sierra__gpt-4o__airline"),
    *("usr_topicalchat/usr_topicalchat", "xstest/xstest_completions"),
)
CONVERSATIONS = [RECORDINGS / f"{name}.jsonl" for name in NAMES]
"""Recorded conversations, one a line, each with an id, messages, labels and metadata."""

needs_recordings = pytest.mark.skipif(
    not RECORDINGS.is_dir(), reason=f"needs recordings that are not part of the repository: there is no {RECORDINGS}"
)
