"""Suites of letta-evals, converted to our format: what each of their keys becomes.

Its eras are A (0.2 to 0.6), B (0.7 to 0.19.0), C (0.19.1 to 0.20) and D (from 0.21).
Every key is converted, refused by name, or dropped with a note; none is ignored silently.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, cast

from vivavoce.errors import Problem, UsageError
from vivavoce.expressions import expression
from vivavoce.suites.document import Document, KeyPath

Era = Literal["A", "B", "C", "D"]

REFUSED: dict[KeyPath, str] = {
    ("sandbox",): "asks for a Modal sandbox; vivavoce has no sandbox. Remove the key to run without one",
    ("target", "model_configs"): "names files inside the letta-evals package; list model_handles instead",
    ("target", "memory_workspace"): "a memory workspace is not supported",
}
DROPPED: dict[KeyPath, str] = {
    ("dataset_provenance",): "is an output of letta-evals and does not change the run",
    ("target", "pricing"): "the cost of a Letta target is not computed",
}
RENAMED = {"num_runs": "trials"}
TARGET_KINDS = {"agent": "letta", "letta_agent": "letta"}
GRADER_KINDS = {"rubric": "model_judge"}
PROVIDERS = ("openai",)


@dataclass(slots=True)
class Translation:
    """A document with our own keys, with what was changed (`notes`) and what is not supported (`problems`)."""

    document: Document
    era: Era | None
    notes: list[str] = field(default_factory=list[str])
    problems: list[Problem] = field(default_factory=list[Problem])

    def refuse(self, at: KeyPath, message: str) -> None:
        """Report a key that asks for something unsupported."""
        self.problems.append(self.document.problem(at, message))

    def note(self, at: KeyPath, message: str) -> None:
        """Report a key that was renamed or dropped."""
        place = self.document.problem(at, message)
        self.notes.append(str(place))


def translate(document: Document, targets: Sequence[Mapping[str, Any]] = ()) -> Translation:
    """Convert a suite of any era to our own keys, in place; `targets` replace the suite's own."""
    work = Translation(document, era_of(document.data))
    if targets:
        _note_replaced(work, targets)
        one, *more = map(dict, targets)
        document.replace("target", None if more else one)
        document.replace("targets", [one, *more] if more else None)
    steps: tuple[Callable[[Translation], None], ...] = (_drop_nulls, _keys, _target, _graders, _gate)
    for step in steps:
        step(work)
    return work


def _note_replaced(work: Translation, targets: Sequence[Mapping[str, Any]]) -> None:
    """Note what of the suite's own chat models none of the targets has that take their place."""
    own = {key for target in _targets(work.document.data).values() if target.get("kind") == "openai" for key in target}
    chat = [target for target in targets if target.get("kind") == "openai"]
    left = [key for key in _OF_CHAT_MODELS if key in own and not any(key in target for target in chat)]
    if chat and left:
        work.notes.append(f"the target given in place of the suite's own goes without its {', '.join(left)}")


_OF_CHAT_MODELS = ("system_prompt", "settings", "tools", "handlers", "mcp", "needs_approval", "approvals")
"""Keys of a chat model that decide how it behaves."""


def era_of(data: dict[str, Any]) -> Era | None:
    """Return the era of a letta-evals suite, None for a suite of ours."""
    kind = _section(data, "target").get("kind")
    gate = data.get("gate")
    if kind not in ("agent", "letta_agent", "letta_code"):
        return None
    if kind == "agent" or (isinstance(gate, dict) and "kind" not in gate):
        return "A"
    if kind == "letta_agent":
        return "B"
    return "D" if "reward" in data else "C"


def _section(data: dict[str, Any], name: str) -> dict[str, Any]:
    value = data.get(name)
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


_NULL_MEANS = {"temperature"}
"""Keys where null has a meaning: the model decides."""


def _drop_nulls(work: Translation) -> None:
    """A null means the same as a missing key."""
    data = work.document.data
    sections = [data, *_targets(data).values(), _section(data, "reward"), _section(data, "gate")]
    sections += [cast("dict[str, Any]", g) for g in _section(data, "graders").values() if isinstance(g, dict)]
    for section in sections:
        for key in [key for key, value in section.items() if value is None and key not in _NULL_MEANS]:
            del section[key]


def _keys(work: Translation) -> None:
    data = work.document.data
    letta = work.era is not None
    for path, reason in REFUSED.items():
        if _take(data, path) not in (None, False):
            work.refuse(path, reason)
    for path, reason in DROPPED.items():
        if (letta or len(path) == 1) and _take(data, path) is not None:
            work.note(path, f"is ignored: it {reason}" if len(path) == 1 else f"is ignored: {reason}")
    for old, new in RENAMED.items():
        if old in data:
            data[new] = data.pop(old)
            work.document.places[new,] = work.document.places.get((old,), (1, 1))
            work.note((old,), f"is called {new} here")
    dataset = data.get("dataset")
    if isinstance(dataset, str) and dataset.startswith(("http://", "https://")):
        work.refuse(("dataset",), "is a URL; datasets are not downloaded, so save the file beside the suite")


def _take(data: dict[str, Any], path: KeyPath) -> Any:
    *parents, last = path
    for part in parents:
        data = _section(data, str(part))
    return data.pop(str(last), None)


def _targets(data: dict[str, Any]) -> dict[KeyPath, dict[str, Any]]:
    """Return the targets of a suite by their places."""
    listed = data.get("targets")
    found: dict[KeyPath, Any] = {("target",): data.get("target")}
    found |= {
        ("targets", i): one for i, one in enumerate(cast("list[Any]", listed) if isinstance(listed, list) else [])
    }
    return {at: cast("dict[str, Any]", one) for at, one in found.items() if isinstance(one, dict)}


def _target(work: Translation) -> None:
    targets = _targets(work.document.data)
    for at, target in targets.items():
        kind = target.get("kind")
        if kind in TARGET_KINDS:
            target["kind"] = TARGET_KINDS[kind]
            work.note((*at, "kind"), f"'{kind}' is called '{target['kind']}' here")
    target = targets.get(("target",), {})
    if "cleanup" in work.document.data and ("targets", 0) not in targets:
        cleanup = work.document.data.pop("cleanup")
        if target.get("kind") == "letta":
            target["cleanup"] = cleanup
            work.note(("cleanup",), "is called target.cleanup here")
        elif cleanup:
            work.note(("cleanup",), "is ignored: only agents on a Letta server are created per conversation")
    elif work.era in ("A", "B") and target.get("kind") == "letta":
        target.setdefault("cleanup", False)


def _graders(work: Translation) -> None:
    for name, grader in _section(work.document.data, "graders").items():
        if isinstance(grader, dict):
            _grader(work, ("graders", name), cast("dict[str, Any]", grader))


def _grader(work: Translation, at: KeyPath, grader: dict[str, Any]) -> None:
    kind = grader.get("kind")
    if kind == "letta_judge":
        work.refuse(
            (*at, "kind"),
            "'letta_judge' (a Letta agent as judge) is not supported; use kind: model_judge with the same prompt",
        )
        _section(work.document.data, "graders")[str(at[1])] = {"kind": "function", "function": "ascii_printable_only"}
        return
    if kind in GRADER_KINDS:
        grader["kind"] = GRADER_KINDS[kind]
        work.note((*at, "kind"), f"'{kind}' is called '{grader['kind']}' here")
    if grader.get("kind") == "model_judge":
        _judge(work, at, grader)
    if work.era is not None and grader.get("extractor") == "pattern":
        _pattern(work, (*at, "extractor_config"), _section(grader, "extractor_config"))


def _pattern(work: Translation, at: KeyPath, config: dict[str, Any]) -> None:
    """Count groups as letta-evals does with `search_all`: from 0, and a single group is always taken."""
    group = config.get("group", 0)
    if config.get("search_all") is not True or not isinstance(group, int):
        return
    try:
        groups = expression(str(config.get("pattern", ""))).groups
    except UsageError:  # the extractor says so, with its place
        return
    config["group"] = group + 1 if groups > 1 else groups
    if config["group"] != group:
        work.note((*at, "group"), f"is {config['group']} here: with search_all letta-evals counts groups from 0")


def _judge(work: Translation, at: KeyPath, grader: dict[str, Any]) -> None:
    provider = grader.pop("provider", None)
    if provider is not None and provider not in PROVIDERS:
        work.refuse((*at, "provider"), f"no provider '{provider}' yet; known: {', '.join(PROVIDERS)}")
    if work.era is None and provider is None:
        return
    model = grader.get("model", "gpt-4o-mini")
    if isinstance(model, str) and not model.startswith(("openai:", "openai/", "http://", "https://")):
        grader["model"] = f"openai:{model}"
    if work.era in ("A", "B"):
        grader.setdefault("rubric_vars", [])


def _gate(work: Translation) -> None:
    gate = work.document.data.get("gate")
    if not isinstance(gate, dict):
        return
    gate = cast("dict[str, Any]", gate)
    if "kind" not in gate:
        gate["kind"] = "simple"
        if "metric" in gate:
            gate["aggregation"] = gate.pop("metric")
            work.note(("gate", "metric"), "is called aggregation here")
        if "pass_value" in gate:
            gate["pass_threshold"] = gate.pop("pass_value")
            work.note(("gate", "pass_value"), "is called pass_threshold here")
        names = list(_section(work.document.data, "graders"))
        if "metric_key" not in gate and len(names) == 1:
            gate["metric_key"] = names[0]
    _condition_kinds(gate)


def _condition_kinds(gate: dict[str, Any]) -> None:
    conditions = gate.get("conditions")
    for condition in cast("list[Any]", conditions) if isinstance(conditions, list) else []:
        if isinstance(condition, dict):
            found = cast("dict[str, Any]", condition)
            found.setdefault("kind", "simple")
            _condition_kinds(found)
