"""From the recording of a suite to what answers its tools, to the grader that compares, and to what it covers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from vivavoce.errors import UsageError, did_you_mean
from vivavoce.grading.as_recorded import AsRecordedGrader, as_recorded
from vivavoce.grading.grader import Grader
from vivavoce.records.details import AS_RECORDED
from vivavoce.records.recording import RecordedConversation, Recording, same_words
from vivavoce.records.score import turn_label
from vivavoce.safe_text import safe
from vivavoce.samples.sample import Sample
from vivavoce.suites.grading_spec import AnyGraderSpec, RecordingGraderSpec, RecordingSpec
from vivavoce.suites.load import Suite
from vivavoce.suites.plan import Plan, hash_file
from vivavoce.suites.target_spec import OpenAITargetSpec, RecordingTargetSpec, TargetSpec, TerminalTargetSpec
from vivavoce.suites.targets import known_tools, offered_names, open_recording

_MAX_NAMES = 5
"""Rows or tools that a note names."""


def with_recording(suite: Suite) -> Suite:
    """Return a suite that compares its conversations with its recording, where it has one with replies.

    Raises:
        UsageError: the recording cannot be read, or its grader has the name of another one.
    """
    spec = suite.spec.recording
    if spec is None or not open_recording(suite, spec.path).replies:
        return suite
    graders = suite.spec.graders
    if any(isinstance(grader, RecordingGraderSpec) for grader in graders.values()):
        return suite
    if AS_RECORDED in graders:
        rule = f"{AS_RECORDED} is the grader that compares with the recording; give this one another name"
        raise UsageError(suite.document.problem(("graders", AS_RECORDED), rule))
    own: AnyGraderSpec = RecordingGraderSpec(kind="recording", path=spec.path)
    return replace(suite, spec=suite.spec.model_copy(update={"graders": {**graders, AS_RECORDED: own}}))


def recording_grader(name: str, spec: RecordingGraderSpec, graders: Sequence[Grader], suite: Suite) -> AsRecordedGrader:
    """Return the grader that compares with a recording; `graders` grade the recorded side.

    Raises:
        UsageError: the recording cannot be read, or has no replies.
    """
    recording, path = open_recording(suite, spec.path), suite.base / spec.path
    if not recording.replies:
        raise UsageError(f"{recording.place} has only tool results and no reply to compare with; export it again")
    return as_recorded(name, recording, hash_file(path), graders, spec.display_name)


def check_readable(suite: Suite) -> None:
    """Check that the recording of a suite can be read; everything else that is wrong would depend on it.

    Raises:
        UsageError: it cannot be read, is empty or cut off, or a line is broken.
    """
    if suite.spec.recording is not None:
        open_recording(suite, suite.spec.recording.path)


def check_live(suite: Suite) -> None:
    """Check that what may be live is known, and that no tool is live that is not named.

    Raises:
        UsageError: a name is neither a tool nor a target, nobody answers a tool, or a target calls tools of its own.
    """
    spec = suite.spec.recording
    if spec is None:
        return
    targets = suite.spec.all_targets
    names = {name: target for target in targets.values() for name, _ in target.names_and_models}
    tools = known_tools(suite)
    known = [*tools, *names]
    for name in spec.live:
        if tools and name not in known:
            rule = f"no tool and no target is called '{name}'{did_you_mean(name, known)}"
            raise UsageError(suite.document.problem(("recording", "live"), rule))
    for name, target in names.items():
        _check_target(suite, spec, name, target)


def _check_target(suite: Suite, spec: RecordingSpec, name: str, target: TargetSpec) -> None:
    if isinstance(target, OpenAITargetSpec) and (target.tools or target.handlers or target.mcp):
        handled = target.handlers or {}
        for tool in spec.live:
            if target.mcp is None and tool in (offered_names(target) or ()) and tool not in handled:
                rule = f"no handler answers the tool '{tool}'; give the target handlers: {{{tool}: …}}"
                raise UsageError(suite.document.problem(("recording", "live"), rule))
        return
    harmless = isinstance(target, RecordingTargetSpec | TerminalTargetSpec)
    recording = open_recording(suite, spec.path)
    if harmless or name in spec.live or not recording.calls:
        return
    raise UsageError(
        f"the target '{name}' of kind {_kind(target)} calls its tools itself, so {recording.place} cannot answer "
        f"them; to call them for real, use --live {name}"
    )


def _kind(target: TargetSpec) -> str:
    return str(getattr(target, "kind", ""))


def coverage(suite: Suite, plan: Plan) -> list[str]:
    """Return in sentences which rows the recording of a suite covers, and what is not as it was recorded.

    Raises:
        UsageError: it covers none.
    """
    spec = suite.spec.recording
    if spec is None:
        return []
    recording = open_recording(suite, spec.path)
    if not recording.replies:
        return [f"{recording.place} has only tool results: they are answered from it, and nothing is compared"]
    rows = _Rows.of(recording, plan)
    if not rows.covered:
        of = "" if recording.head.suite is None else f"; it was recorded with the suite '{recording.head.suite}'"
        none = f"none of its {len(recording.conversations):,} rows is among the {rows.total:,} of this suite"
        raise UsageError(f"{recording.place}: {none}{of}")
    return [safe(f"{recording.place} {line}") for line in _sentences(suite, recording, rows, plan)]


@dataclass(slots=True)
class _Rows:
    """The rows of a suite as a recording covers them; `other` maps a row to the turn from which it asks otherwise."""

    total: int = 0
    covered: int = 0
    missing: list[str] = field(default_factory=list[str])
    other: dict[str, int] = field(default_factory=dict[str, int])
    seen: set[str] = field(default_factory=set[str])

    @classmethod
    def of(cls, recording: Recording, plan: Plan) -> _Rows:
        """Return the rows of a plan."""
        rows = cls()
        for sample in plan.samples():
            rows.total += 1
            rows.seen.add(sample.id)
            conversations = recording.conversations.get(sample.id)
            if conversations is None:
                rows.missing.append(sample.id)
                continue
            rows.covered += 1
            if (turn := _asks_other(sample, conversations)) is not None:
                rows.other[sample.id] = turn
        return rows


def _asks_other(sample: Sample, conversations: Sequence[RecordedConversation]) -> int | None:
    """Return the turn from which a scripted row asks something else than in all recorded conversations."""
    messages = [message.content for message in sample.user_messages]
    if not messages:
        return None  # a tester says what it likes
    first: list[int | None] = []
    for conversation in conversations:
        pairs = list(zip(messages, (reply.said for reply in conversation.turns), strict=False))
        differing = next((index for index, pair in enumerate(pairs) if not same_words(*pair)), None)
        longer = (
            len(pairs) if len(messages) > len(conversation.turns) and conversation.turns[-1].error is None else None
        )
        first.append(longer if differing is None else differing)
    known = [turn for turn in first if turn is not None]
    return max(known) if len(known) == len(first) else None


def _sentences(suite: Suite, recording: Recording, rows: _Rows, plan: Plan) -> Iterator[str]:
    head = recording.head
    of = f", recorded in run {head.run}" if head.run else ""
    yield f"covers {rows.covered:,} of {rows.total:,} rows{of}"
    if head.suite is not None and head.suite != suite.spec.name:
        yield f"was recorded with another suite, '{head.suite}'; rows are matched by their ids"
    if head.dataset is not None and head.dataset != plan.dataset:
        yield "was recorded with another version of the dataset"
    if rows.missing:
        yield f"does not have {_join_names(rows.missing)}: a tool that only these rows call is not answered"
    if rows.other:
        changes = [f"{row} from {turn_label(turn)} on" for row, turn in rows.other.items()]
        yield f"has other words of the user: {_join_names(changes)}"
    if plan.takes_all and (left := [row for row in recording.conversations if row not in rows.seen]):
        yield f"has rows that are not run: {_join_names(left)}"
    most = max(len(conversations) for conversations in recording.conversations.values())
    targets = list(dict.fromkeys(reply.target for reply in recording.replies))
    if most > 1:
        by = f" with {len(targets)} targets" if len(targets) > 1 else ""
        yield f"has up to {most} conversations of a row{by}; each new one is compared with the nearest"
    yield from _tools(suite, recording)


def _tools(suite: Suite, recording: Recording) -> Iterator[str]:
    """Yield which recorded tools are not offered any more, and which offered ones were never called."""
    offered = known_tools(suite)
    recorded = list(dict.fromkeys(call.name for call in recording.calls))
    missing = [name for name in recorded if name not in offered]
    if offered and missing:
        new = [name for name in offered if name not in recorded]
        renamed = f"; is it called {_join_names(new)} now?" if new else ""
        yield f"has calls of tools that no target offers: {_join_names(missing)}{renamed}"


def _join_names(names: Sequence[str] | Mapping[str, object]) -> str:
    all_names = list(names)
    more = f" and {len(all_names) - _MAX_NAMES:,} more" if len(all_names) > _MAX_NAMES else ""
    return ", ".join(all_names[:_MAX_NAMES]) + more
