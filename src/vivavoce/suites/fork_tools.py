"""Tools of a fork that nobody answers: what was recorded in the conversation is their answer, until it differs."""

from __future__ import annotations

from copy import copy

from vivavoce.records.run import Attempt
from vivavoce.records.trajectory import tool_results
from vivavoce.targets.openai import OpenAITarget
from vivavoce.targets.target import Target
from vivavoce.tools.recordings import Recordings, recorded_call
from vivavoce.tools.toolbox import Toolbox, by_name


def answer_as_recorded(target: Target, attempt: Attempt) -> None:
    """Have the tools that a target offers and nobody answers give the results that a conversation has of them.

    A call of which it has none is an error of the continuation, not of the target.
    """
    toolbox = target.tools if isinstance(target, OpenAITarget) else None
    if not isinstance(target, OpenAITarget) or not isinstance(toolbox, Toolbox) or toolbox.server is not None:
        return
    answered = [(call, answer) for call, answer in tool_results(attempt.trajectory.messages) if answer is not None]
    made = [recorded_call(attempt.key.sample_id, call, answer) for call, answer in answered]
    calls = [one for one in made if one is not None]
    recordings = Recordings(calls, "the conversation that this goes on from")
    names = {one.name for one in calls} & by_name(toolbox.definitions).keys()
    answering = copy(toolbox)
    answering.handlers = {**dict.fromkeys(names, recordings), **toolbox.handlers}
    target.tools = answering
