"""The tools of a run as recordings, from which another run can answer the same calls."""

from __future__ import annotations

import json
from typing import TextIO

from vivavoce.records.trajectory import tool_results
from vivavoce.report.graded_run import GradedRun
from vivavoce.tools.recordings import FORMAT, HEAD, recorded_call


def write_recordings(graded: GradedRun, out: TextIO) -> None:
    """Write a line for each call that a tool answered, whoever that was, after a line that says what the file is."""
    out.write(json.dumps({HEAD: FORMAT}) + "\n")
    for outcome in graded.outcomes():
        attempt = outcome.attempt
        for call, answer in tool_results(attempt.trajectory.messages):
            recorded = None if answer is None else recorded_call(attempt.key.sample_id, call, answer)
            if recorded is not None:
                out.write(json.dumps(recorded.model_dump(mode="json"), ensure_ascii=False) + "\n")
