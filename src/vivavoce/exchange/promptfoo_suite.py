"""Configurations of promptfoo as suites: its tests become rows with assertions, its providers targets.

Tests of one `metadata.conversationId` become one conversation. Templates are filled with the variables of the tests;
what is more than a variable, code, files of code, transforms and costs have no translation and are told.
Source: the configuration reference and the pages on assertions in promptfoo's documentation.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any, cast

from vivavoce.exchange.loss import Loss
from vivavoce.exchange.promptfoo_assertions import translated
from vivavoce.exchange.promptfoo_files import list_of, mapping_of, read_tests, text_of_file
from vivavoce.exchange.suites import Suite, SuiteFormat, read_yaml

Vars = Mapping[str, Any]

_VARIABLE = re.compile(r"\{\{-?\s*([\w.]+)\s*-?\}\}")
_TEMPLATE = re.compile(r"\{%|\{\{")
_ANY_BOT = {"kind": "function", "function": "bot.py:reply"}
_CHAT = {
    "openai": ("https://api.openai.com/v1", "OPENAI_API_KEY"),
    "anthropic": ("https://api.anthropic.com/v1", "ANTHROPIC_API_KEY"),
    "openrouter": ("https://openrouter.ai/api/v1", "OPENROUTER_API_KEY"),
    "mistral": ("https://api.mistral.ai/v1", "MISTRAL_API_KEY"),
    "groq": ("https://api.groq.com/openai/v1", "GROQ_API_KEY"),
    "deepseek": ("https://api.deepseek.com/v1", "DEEPSEEK_API_KEY"),
    "ollama": ("http://localhost:11434/v1", "OLLAMA_API_KEY"),
}
"""Where the providers that speak OpenAI's chat completions are, and the environment variable of their key."""
_SETTINGS = {"temperature": "temperature", "max_tokens": "max_tokens", "top_p": "top_p", "seed": "seed"}
_UNTRANSLATED = ("scenarios", "nunjucksFilters", "extensions", "redteam", "outputPath", "derivedMetrics")


@dataclass(frozen=True, slots=True)
class Prompt:
    """What is said to the system before a conversation, and what the user says, as templates."""

    label: str
    user: str
    system: str | None = None


def _fits(path: Path, text: str) -> bool:
    if path.suffix.lower() not in (".yaml", ".yml", ".json"):
        return False
    keys = set(re.findall(r"^\s*\"?(\w+)\"?:", text, re.MULTILINE))
    return {"prompts", "tests"} <= keys and bool({"providers", "targets"} & keys)


def _read(path: Path, text: str, loss: Loss) -> Suite:
    data = mapping_of(read_yaml(path, text))
    base = path.parent
    loss.conversation = None
    for key in _UNTRANSLATED:
        if data.get(key):
            loss.dropped(f"'{key}'")
    default = mapping_of(data.get("defaultTest"))
    tests = [_with_default(test, default) for test in read_tests(data.get("tests"), base, loss)]
    prompts = list(_prompts(data.get("prompts"), base, loss))
    rows = [row for prompt in prompts for row in _rows(prompt, tests, len(prompts) > 1, loss)]
    loss.conversation = None
    targets = list(_targets(list_of(data.get("providers") or data.get("targets")), prompts, default, loss))
    suite: Suite = {"name": str(data.get("description") or path.stem), "dataset": {"rows": rows}}
    suite |= {"target": targets[0]} if len(targets) == 1 else {"targets": targets}
    repeat = mapping_of(data.get("evaluateOptions")).get("repeat")
    return {**suite, "trials": repeat} if isinstance(repeat, int) and repeat > 1 else suite


def _with_default(test: Vars, default: Vars) -> dict[str, Any]:
    asserts = [*list_of(default.get("assert")), *list_of(test.get("assert"))]
    variables = {**mapping_of(default.get("vars")), **mapping_of(test.get("vars"))}
    metadata = {**mapping_of(default.get("metadata")), **mapping_of(test.get("metadata"))}
    return {**default, **test, "vars": variables, "assert": asserts, "metadata": metadata}


def _prompts(value: Any, base: Path, loss: Loss) -> Iterator[Prompt]:
    for index, item in enumerate(list_of(value), 1):
        given = mapping_of(item) if isinstance(item, Mapping) else {"raw": item}
        raw, label = given.get("raw") or given.get("id"), str(given.get("label") or f"prompt-{index}")
        text = text_of_file(raw, base, loss) if isinstance(raw, str) else None
        if text is None:
            loss.dropped(f"prompt '{label}'")
            continue
        yield _prompt(label, text, loss)


def _prompt(label: str, text: str, loss: Loss) -> Prompt:
    """Return a prompt of a text, or of the messages of a chat that end with the user."""
    if "_conversation" in text:
        asked = [name for name in _VARIABLE.findall(text) if "." not in name and not name.startswith("_")]
        users = [name for name in asked if "system" not in name]
        loss.guessed(f"what the user says in prompt '{label}', which hands the conversation on: the last variable")
        system = next((name for name in asked if "system" in name), None)
        told = f"{{{{{system}}}}}" if system else None
        return Prompt(label, f"{{{{{users[-1]}}}}}" if users else "", told)
    messages = _messages(text)
    if messages is None:
        return Prompt(label, text)
    system = [str(one.get("content")) for one in messages if one.get("role") == "system"]
    others = [one for one in messages if one.get("role") != "system"]
    if len(others) > 1:
        loss.dropped(f"messages before the user's last in prompt '{label}'", count=len(others) - 1)
    return Prompt(label, str(others[-1].get("content")) if others else "", "\n\n".join(system) or None)


def _messages(text: str) -> list[dict[str, Any]] | None:
    if not text.lstrip().startswith(("[", "- ")):
        return None
    quoted = re.sub(r"(?<![\"'\w])(\{\{[^}]*\}\})(?![\"'\w])", r'"\1"', text)
    try:
        found = read_yaml(Path("prompt"), quoted)
    except ValueError:
        return None
    return [mapping_of(one) for one in cast("list[Any]", found)] if isinstance(found, list) else None


def _rows(prompt: Prompt, tests: list[dict[str, Any]], several: bool, loss: Loss) -> Iterator[dict[str, Any]]:
    """Yield a row for each test, or for the tests of one conversation, in their order."""
    conversations: dict[str, list[tuple[str, list[Any]]]] = {}
    for index, test in enumerate(tests, 1):
        together = mapping_of(test["metadata"]).get("conversationId")
        for number, variables in enumerate(_combinations(mapping_of(test["vars"])), 1):
            name = str(together or test.get("description") or f"test-{index}")
            name = name if number == 1 else f"{name}-{number}"
            if not together and name in conversations:
                name = f"{name}-{index}"
            loss.conversation = name
            said = filled(prompt.user, variables, loss)
            found = [one for item in test["assert"] for one in translated(mapping_of(item), variables, loss)]
            conversations.setdefault(name, []).append((said, found))
            if "threshold" in test:
                loss.dropped("'threshold' of a test")
    for name, turns in conversations.items():
        row: dict[str, Any] = {"id": f"{name} ({prompt.label})" if several else name}
        row["input"] = turns[0][0] if len(turns) == 1 else [said for said, _ in turns]
        if any(found for _, found in turns):
            row["expect"] = [found[0] if len(found) == 1 else found or None for _, found in turns]
        yield {**row, "tags": [prompt.label]} if several else row


def _combinations(variables: Vars) -> Iterator[dict[str, Any]]:
    """Yield the variables of each test that a test with lists of values stands for."""
    lists = [cast("list[Any]", value) if isinstance(value, list) else [value] for value in variables.values()]
    for values in product(*lists):
        yield dict(zip(variables, values, strict=True))


def filled(template: str, variables: Vars, loss: Loss) -> str:
    """Return a template with its variables filled in; what is more than a variable stays and is told."""

    def value_of(found: re.Match[str]) -> str:
        value: Any = variables
        for step in found[1].split("."):
            value = mapping_of(value).get(step)
        if value is None:
            loss.dropped(f"variable '{found[1]}', which no test gives")
        return found[0] if value is None else str(value)

    text = _VARIABLE.sub(value_of, template)
    if _TEMPLATE.search(_VARIABLE.sub("", template)):
        loss.dropped("expression of a template")
    return text


def _targets(providers: list[Any], prompts: list[Prompt], default: Vars, loss: Loss) -> Iterator[dict[str, Any]]:
    told = dict.fromkeys(prompt.system for prompt in prompts)
    system = next(iter(told), None) if len(told) == 1 else None
    if len(told) > 1:
        loss.dropped("different system messages of prompts: give the targets one each")
    if system is not None and (known := mapping_of(default.get("vars"))):
        system = filled(system, known, loss)
    if not providers:
        loss.dropped("the provider: none is named")
    for item in providers or [{}]:
        target = _target(item, loss)
        if system is not None and target["kind"] == "openai":
            target["system_prompt"] = system
        elif system is not None:
            loss.dropped("system message: a target of this kind has its own")
        yield target


@dataclass(slots=True)
class _Provider:
    id: str
    label: str | None = None
    config: dict[str, Any] = field(default_factory=dict[str, Any])


def _target(item: Any, loss: Loss) -> dict[str, Any]:
    provider = _provider(item)
    named = {"name": provider.label} if provider.label else {}
    kind, _, rest = provider.id.partition(":")
    if kind in _CHAT and rest:
        address, key = _CHAT[kind]
        model = rest.removeprefix("chat:").removeprefix("messages:")
        settings = {ours: provider.config[theirs] for theirs, ours in _SETTINGS.items() if theirs in provider.config}
        for name in provider.config.keys() - {*_SETTINGS, "apiBaseUrl", "apiKey", "tools"}:
            loss.dropped(f"'{name}' of a provider")
        return {
            "kind": "openai",
            **named,
            "base_url": str(provider.config.get("apiBaseUrl") or address),
            "model_handles": [model],
            **({} if kind == "openai" else {"api_key_env": key}),
            **({"settings": settings} if settings else {}),
            **({"tools": provider.config["tools"]} if isinstance(provider.config.get("tools"), list) else {}),
        }
    if kind in ("http", "https"):
        return {**named, **_http(provider, loss)}
    loss.dropped(f"provider '{provider.id}': write a function reply(message) that calls it, in bot.py")
    return {**_ANY_BOT, **named}


def _provider(item: Any) -> _Provider:
    if isinstance(item, str):
        return _Provider(item)
    given = mapping_of(item)
    if "id" not in given and len(given) == 1:  # {"openai:gpt-4o": {config: …}}
        [(name, rest)] = given.items()
        given = {**mapping_of(rest), "id": name}
    return _Provider(str(given.get("id") or "none"), given.get("label"), mapping_of(given.get("config")))


def _http(provider: _Provider, loss: Loss) -> dict[str, Any]:
    config = provider.config
    url = str(config.get("url") or provider.id)
    for name in config.keys() - {"url", "method", "headers", "body"}:
        loss.dropped(f"'{name}' of an HTTP provider")
    loss.guessed("where the reply of an HTTP provider is: set reply of the target to its place")
    method = str(config.get("method") or "POST").upper()
    body = _replaced(config.get("body"))
    return {
        "kind": "http",
        "url": url,
        "method": method,
        **({"headers": config["headers"]} if isinstance(config.get("headers"), dict) else {}),
        **({} if body is None else {"body": body}),
        "reply": "reply",
    }


def _replaced(body: Any) -> Any:
    """Return a body in which the prompt is the message of the user."""
    if isinstance(body, str):
        return re.sub(r"\{\{\s*prompt\s*\}\}", "{{message}}", body)
    if isinstance(body, dict):
        return {str(key): _replaced(value) for key, value in cast("dict[Any, Any]", body).items()}
    if isinstance(body, list):
        return [_replaced(value) for value in cast("list[Any]", body)]
    return body


FORMAT = SuiteFormat("promptfoo", "promptfoo", _fits, _read)
