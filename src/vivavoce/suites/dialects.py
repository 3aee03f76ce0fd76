"""Suites of letta-evals, converted to our format: what each of their keys becomes.

Its eras are A (0.2 to 0.6), B (0.7 to 0.19.0), C (0.19.1 to 0.20) and D (from 0.21).
Every key is converted, refused by name, or dropped with a note; none is ignored silently.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from vivavoce.errors import UsageError
from vivavoce.expressions import expression
from vivavoce.suites.document import Document, KeyPath
from vivavoce.suites.letta_judges import translate_judge
from vivavoce.suites.letta_targets import translate_targets
from vivavoce.suites.translation import Era, Translation, section, targets_of

GRADER_KINDS = {"rubric": "model_judge"}


def translate(document: Document, targets: Sequence[Mapping[str, Any]] = ()) -> Translation:
    """Convert a suite of any era to our own keys, in place; `targets` replace the suite's own."""
    work = Translation(document, era_of(document.data), targets)
    if targets:
        _note_replaced(work, targets)
        one, *more = map(dict, targets)
        document.replace("target", None if more else one)
        document.replace("targets", [one, *more] if more else None)
    steps: tuple[Callable[[Translation], None], ...] = (_drop_nulls, _keys, translate_targets, _graders, _gate)
    for step in steps:
        step(work)
    return work


def _note_replaced(work: Translation, targets: Sequence[Mapping[str, Any]]) -> None:
    """Note what of the suite's own chat models none of the targets has that take their place."""
    own = {key for target in targets_of(work.data).values() if target.get("kind") == "openai" for key in target}
    chat = [target for target in targets if target.get("kind") == "openai"]
    left = [key for key in _OF_CHAT_MODELS if key in own and not any(key in target for target in chat)]
    if chat and left:
        work.notes.append(f"the target given in place of the suite's own goes without its {', '.join(left)}")


_OF_CHAT_MODELS = ("system_prompt", "settings", "tools", "handlers", "mcp", "needs_approval", "approvals")
"""Keys of a chat model that decide how it behaves."""


def era_of(data: dict[str, Any]) -> Era | None:
    """Return the era of a letta-evals suite, None for a suite of ours."""
    kind = section(data, "target").get("kind")
    gate = data.get("gate")
    if kind not in ("agent", "letta_agent", "letta_code"):
        return None
    if kind == "agent" or (isinstance(gate, dict) and "kind" not in gate):
        return "A"
    if kind == "letta_agent":
        return "B"
    return "D" if "reward" in data else "C"


_NULL_MEANS = {"temperature"}
"""Keys where null has a meaning: the model decides."""


def _drop_nulls(work: Translation) -> None:
    """A null means the same as a missing key."""
    data = work.data
    sections = [data, *targets_of(data).values(), section(data, "reward"), section(data, "gate")]
    sections += [cast("dict[str, Any]", g) for g in section(data, "graders").values() if isinstance(g, dict)]
    for one in sections:
        for key in [key for key, value in one.items() if value is None and key not in _NULL_MEANS]:
            del one[key]


def _keys(work: Translation) -> None:
    data = work.data
    _sandbox(work)
    if data.pop("dataset_provenance", None) is not None:
        work.note(("dataset_provenance",), "is ignored: it is an output of letta-evals and does not change the run")
    if "num_runs" in data:
        work.rename("num_runs", "trials")
    dataset = data.get("dataset")
    if isinstance(dataset, str) and dataset.startswith(("http://", "https://")):
        work.refuse(("dataset",), "is a URL; datasets are not downloaded, so save the file beside the suite")


def _sandbox(work: Translation) -> None:
    """Refuse a sandbox, without which an agent's tools would run on this machine; another target needs none."""
    if work.data.pop("sandbox", None) in (None, False):
        return
    if work.replaced:
        work.note(("sandbox",), "is ignored: it is for the suite's own target")
    else:
        work.refuse(("sandbox",), "asks for a Modal sandbox; vivavoce has none. Remove the key to run without one")


def _graders(work: Translation) -> None:
    if work.era == "A" and "graders" not in work.data and isinstance(work.data.get("grader"), dict):
        work.data["graders"] = {"grader": work.data.pop("grader")}
        work.document.places["graders", "grader"] = work.document.places.get(("grader",), (1, 1))
        work.note(("grader",), "is graders.grader here")
    for name, grader in section(work.data, "graders").items():
        if isinstance(grader, dict):
            _grader(work, ("graders", name), cast("dict[str, Any]", grader))


def _grader(work: Translation, at: KeyPath, grader: dict[str, Any]) -> None:
    kind = grader.get("kind")
    if kind in GRADER_KINDS:
        grader["kind"] = GRADER_KINDS[kind]
        work.note((*at, "kind"), f"'{kind}' is called '{grader['kind']}' here")
    if grader.get("kind") in ("model_judge", "letta_judge"):
        translate_judge(work, at, grader)
    if work.era is not None and grader.get("extractor") == "pattern":
        _pattern(work, (*at, "extractor_config"), section(grader, "extractor_config"))


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


def _gate(work: Translation) -> None:
    gate = work.data.get("gate")
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
        names = list(section(work.data, "graders"))
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
