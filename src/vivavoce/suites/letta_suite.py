"""Suites of letta-evals, converted to our format.

Its eras are A (0.2 to 0.6), B (0.7 to 0.19.0), C (0.19.1 to 0.20) and D (from 0.21).
Every key is converted, refused by name, or dropped with a note; none is ignored silently.

Source of the handles: `letta_evals/llm_model_configs/*.json` and the suites of its own leaderboard that list handles.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, cast

from vivavoce.errors import Problem, UsageError, did_you_mean
from vivavoce.models.names import PROVIDERS
from vivavoce.safe_regex import expression
from vivavoce.suites.document import Document, KeyPath

Era = Literal["A", "B", "C", "D"]


@dataclass(slots=True)
class Translation:
    """A document with our own keys, with what was changed (`notes`) and what is not supported (`problems`).

    `replaced` are the targets that the caller put in place of the suite's own.
    """

    document: Document
    era: Era | None
    replaced: Sequence[Mapping[str, Any]] = ()
    notes: list[str] = field(default_factory=list[str])
    problems: list[Problem] = field(default_factory=list[Problem])

    @property
    def data(self) -> dict[str, Any]:
        """The data of the document."""
        return self.document.data

    def refuse(self, at: KeyPath, message: str) -> None:
        """Report a key that asks for something unsupported."""
        self.problems.append(self.document.problem(at, message))

    def note(self, at: KeyPath, message: str) -> None:
        """Report a key that was renamed or dropped."""
        self.notes.append(str(self.document.problem(at, message)))

    def rename(self, old: str, new: str) -> None:
        """Give a key of the top another name, at the same place."""
        self.data[new] = self.data.pop(old)
        self.document.places[new,] = self.document.places.get((old,), (1, 1))
        self.note((old,), f"is called {new} here")


def section(data: dict[str, Any], name: str) -> dict[str, Any]:
    """Return a mapping in the data, an empty one where there is none."""
    value = data.get(name)
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def targets_of(data: dict[str, Any]) -> dict[KeyPath, dict[str, Any]]:
    """Return the targets of a suite by their places."""
    target_list = data.get("targets")
    targets: dict[KeyPath, Any] = {("target",): data.get("target")}
    targets |= {
        ("targets", i): target
        for i, target in enumerate(cast("list[Any]", target_list) if isinstance(target_list, list) else [])
    }
    return {at: cast("dict[str, Any]", target) for at, target in targets.items() if isinstance(target, dict)}


MODEL_CONFIGS: Mapping[str, str] = {
    "claude-4-1-opus": "anthropic/claude-opus-4-1-20250805",
    "claude-4-5-haiku": "anthropic/claude-haiku-4-5-20251001",
    "claude-4-5-opus": "anthropic/claude-opus-4-5-20251101",
    "claude-4-5-sonnet": "anthropic/claude-sonnet-4-5-20250929",
    "claude-4-6-opus": "anthropic/claude-opus-4-6",
    "claude-4-6-sonnet": "anthropic/claude-sonnet-4-6",
    "deepseek-chat": "deepseek/deepseek-chat",
    "deepseek-reasoner": "deepseek/deepseek-reasoner",
    "gemini-3-flash": "google_ai/gemini-3-flash-preview",
    "gemini-3-pro": "google_ai/gemini-3-pro-preview",
    "openrouter-deepseek-v3.1": "openrouter/deepseek/deepseek-chat-v3.1",
    "openrouter-glm-4.6": "openrouter/z-ai/glm-4.6",
    "openrouter-kimi-k2-0905": "openrouter/moonshotai/kimi-k2-0905",
    "openrouter-kimi-k2-thinking": "openrouter/moonshotai/kimi-k2-thinking",
    "openrouter-minimax-m2": "openrouter/minimax/minimax-m2",
    "openrouter-mistral-large-3": "openrouter/mistralai/mistral-large-2512",
    "together-deepseek-v3": "together/deepseek-ai/DeepSeek-V3",
    "together-glm-4.5-air": "together/zai-org/GLM-4.5-Air-FP8",
    "together-gpt-oss-120b": "together/openai/gpt-oss-120b",
    "together-gpt-oss-20b": "together/openai/gpt-oss-20b",
    "together-kimi-k2": "together/moonshotai/Kimi-K2-Instruct-0905",
}
"""The handle of the model in each file of `model_configs` whose name does not tell it."""
_OPENAI = re.compile(r"openai-(gpt-.+?)(?:-(?:minimal|low|medium|high|xhigh))?")

_OTHER_NAMES = {"google_ai": "google", "google_vertex": "vertex"}
"""Providers that Letta calls otherwise."""


def handle_of(config: str) -> str | None:
    """Return the handle of the model in a file of `model_configs`, None if there is no such file."""
    if match := _OPENAI.fullmatch(config):
        return f"openai/{match[1]}"
    return MODEL_CONFIGS.get(config)


def judge_provider(name: str) -> str | None:
    """Return our name of a provider that letta-evals or Letta names, None if there is none here."""
    provider = _OTHER_NAMES.get(name, name)
    return provider if provider in PROVIDERS else None


def judge_of_handle(handle: str) -> str | None:
    """Return the judge of a Letta handle such as `anthropic/claude-haiku-4-5`, None if its provider is unknown."""
    provider, _, model = handle.partition("/")
    known = judge_provider(provider)
    return f"{known}:{model}" if known and model else None


DEFAULT_JUDGE = "anthropic/claude-haiku-4-5-20251001"
"""The model of the agent that judges in letta-evals where a suite names no other."""
_OF_AGENT = ("agent_file", "agent_id", "judge_tool_name")
_INERT = {"kind": "function", "function": "ascii_printable_only"}
"""Stands for a grader that was refused, so that the rest of the suite is checked."""


def translate_judge(work: Translation, at: KeyPath, grader: dict[str, Any]) -> None:
    """Give the model of a judge our name, and make a judge of a Letta agent one of its model."""
    if grader.get("kind") == "letta_judge":
        handle = _model_of_agent(work, at, grader)
        if handle is None:
            section(work.data, "graders")[str(at[1])] = dict(_INERT)
            return
        for key in _OF_AGENT:
            grader.pop(key, None)
        grader |= {"kind": "model_judge", "model": handle}
        work.note(
            (*at, "kind"), f"'letta_judge' judges with the model of its agent, {handle}, without its tools and memory"
        )
    _name_model(work, at, grader)
    if work.era in ("A", "B"):
        grader.setdefault("rubric_vars", [])


def _name_model(work: Translation, at: KeyPath, grader: dict[str, Any]) -> None:
    provider_name = grader.pop("provider", None)
    if work.era is None and provider_name is None:
        return
    provider = judge_provider(str(provider_name or "openai"))
    if provider is None:
        work.refuse(
            (*at, "provider"), f"no provider '{provider_name}'; write model: http://host/v1#NAME for an endpoint"
        )
        provider = "openai"
    model = grader.get("model", "gpt-4o-mini")
    if isinstance(model, str) and not model.startswith(("http://", "https://")) and _provider_in(model) is None:
        grader["model"] = f"{provider}:{model}"


def _provider_in(model: str) -> str | None:
    """Return the provider that a model's name begins with, None if it begins with none."""
    return judge_provider(model.partition(":" if ":" in model.partition("/")[0] else "/")[0])


def _model_of_agent(work: Translation, at: KeyPath, grader: dict[str, Any]) -> str | None:
    """Return the model of the agent that judges, None and a problem where it is not known."""
    if grader.get("agent_id") is not None:
        work.refuse(
            (*at, "agent_id"), "the model of a judge on a server is not known here; use kind: model_judge and its model"
        )
        return None
    handle, file = DEFAULT_JUDGE, grader.get("agent_file")
    if file is not None:
        try:
            handle = _handle_in(work.document.path.parent / str(file))
        except (OSError, ValueError, LookupError, TypeError) as error:
            work.refuse((*at, "agent_file"), f"'{file}' has no agent whose model can be read: {error}")
            return None
    judge = judge_of_handle(handle)
    if judge is None:
        work.refuse((*at, "kind"), f"the provider of the agent's model '{handle}' is not known here; use model_judge")
    return judge


def _handle_in(path: Path) -> str:
    data: Any = json.loads(path.read_text(encoding="utf-8"))
    agent = cast("dict[str, Any]", data["agents"][0])
    config = cast("dict[str, Any]", agent.get("llm_config") or {})
    handle = agent.get("model") or config.get("handle") or f"{config['model_endpoint_type']}/{config['model']}"
    return str(handle)


KINDS = {"agent": "letta", "letta_agent": "letta"}
REFUSED = {"memory_workspace": "a memory workspace is not supported; use memory_dir"}
DROPPED = {
    "pricing": "the cost of a Letta target is not computed",
    "allowed_tools": "the command line has no such option, and letta-evals sent none; use flags",
    "disallowed_tools": "the command line has no such option, and letta-evals sent none; use flags",
}


def translate_targets(work: Translation) -> None:
    """Give the keys of the targets, and those next to them that are about agents, our names."""
    for at, target in targets_of(work.data).items():
        kind = target.get("kind")
        if kind in KINDS:
            target["kind"] = KINDS[kind]
            work.note((*at, "kind"), f"'{kind}' is called '{target['kind']}' here")
        if work.era is not None and not work.replaced:
            _target_keys(work, at, target)
    _cleanup(work)


def _target_keys(work: Translation, at: KeyPath, target: dict[str, Any]) -> None:
    for key, reason in REFUSED.items():
        if target.pop(key, None) not in (None, False):
            work.refuse((*at, key), reason)
    for key, reason in DROPPED.items():
        if target.pop(key, None) is not None:
            work.note((*at, key), f"is ignored: {reason}")
    _model_configs(work, (*at, "model_configs"), target)
    _once(work, (*at, "model_handles"), target)
    if target.get("kind") == "letta_code":
        _folders(work, at, target)


def _model_configs(work: Translation, at: KeyPath, target: dict[str, Any]) -> None:
    """Replace names of files inside letta-evals by the handles of their models."""
    names = target.pop("model_configs", None)
    if not isinstance(names, list):
        return
    known: list[Any] = []
    for i, name in enumerate(cast("list[Any]", names)):
        if (handle := handle_of(str(name))) is None:
            hint = did_you_mean(str(name), MODEL_CONFIGS)
            work.refuse((*at, i), f"names no known file of letta-evals: '{name}'{hint}; list model_handles instead")
        known.append(handle or name)
    target["model_handles"] = [*target.get("model_handles", []), *known]
    work.note(at, "becomes model_handles; the context window and reasoning effort of those files are dropped")


def _once(work: Translation, at: KeyPath, target: dict[str, Any]) -> None:
    """List each model once: letta-evals put the results of a model that is listed twice into one file."""
    handles = target.get("model_handles")
    if isinstance(handles, list):
        once = list(dict.fromkeys(cast("list[Any]", handles)))
        if len(once) < len(cast("list[Any]", handles)):
            target["model_handles"] = once
            work.note(at, "lists a model more than once; each runs once; use trials to repeat runs")


def _folders(work: Translation, at: KeyPath, target: dict[str, Any]) -> None:
    apart = target.pop("sandbox", None)
    skills = target.pop("skills_dir", None)
    if skills is not None:
        target["flags"] = f"{target.get('flags') or ''} --skills {shlex.quote(str(skills))}".strip()
        work.note((*at, "skills_dir"), "becomes --skills in flags")
    folder = target.get("working_dir")
    if isinstance(folder, str) and _of_each_model(target, apart):
        target["working_dir"] = f"{folder}/{{model}}"
        work.note((*at, "working_dir"), f"becomes {target['working_dir']}: each model has its own folder")


def _of_each_model(target: Mapping[str, Any], apart: object) -> bool:
    """Return whether each model works in a folder of its own: as `sandbox` says, else where there are several."""
    return apart if isinstance(apart, bool) else len(target.get("model_handles") or ()) > 1


def _cleanup(work: Translation) -> None:
    """Put `cleanup` where it belongs: at the target whose agents it is about."""
    target = targets_of(work.data).get(("target",), {})
    if "cleanup" in work.data and "targets" not in work.data:
        cleanup = work.data.pop("cleanup")
        if target.get("kind") == "letta":
            target["cleanup"] = cleanup
            work.note(("cleanup",), "is called target.cleanup here")
        elif cleanup:
            work.note(("cleanup",), "is ignored: only agents on a Letta server are created per conversation")
    elif work.era in ("A", "B") and target.get("kind") == "letta":
        target.setdefault("cleanup", False)


GRADER_KINDS = {"rubric": "model_judge"}


def translate(document: Document, targets: Sequence[Mapping[str, Any]] = ()) -> Translation:
    """Convert a suite of any era to our own keys, in place; `targets` replace the suite's own."""
    work = Translation(document, era_of(document.data), targets)
    if targets:
        _note_replaced(work, targets)
        first, *more = map(dict, targets)
        document.replace("target", None if more else first)
        document.replace("targets", [first, *more] if more else None)
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
    for mapping in sections:
        for key in [key for key, value in mapping.items() if value is None and key not in _NULL_MEANS]:
            del mapping[key]


def _keys(work: Translation) -> None:
    data = work.data
    _sandbox(work)
    if data.pop("dataset_provenance", None) is not None:
        work.note(("dataset_provenance",), "is ignored: it is an output of letta-evals and does not change the run")
    if "num_runs" in data:
        work.rename("num_runs", "trials")
    dataset = data.get("dataset")
    if isinstance(dataset, str) and dataset.startswith(("http://", "https://")):
        work.refuse(("dataset",), "is a URL; datasets are not downloaded, so save the file next to the suite")


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
        work.note(("grader",), "becomes graders.grader")
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
            fields = cast("dict[str, Any]", condition)
            fields.setdefault("kind", "simple")
            _condition_kinds(fields)
