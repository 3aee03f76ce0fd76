"""promptfoo: its results as graded conversations, and its configurations as suites.

Results are read as `promptfoo eval --output` writes them in JSON and JSONL. Those of one `metadata.conversationId` and
one provider are the turns of one conversation. A prompt that is the JSON of a chat becomes its messages. Assertions
become `labels.graders`; whether a result succeeded is `labels.passed`.
The tests of a configuration become rows with assertions, those of one `metadata.conversationId` one conversation.
Templates are filled with the variables of the tests; what is more than a variable, code, files of code, transforms and
costs have no translation and are reported.
Source: files that promptfoo 0.121 wrote; the configuration reference and the pages on assertions, and on deterministic
and model-graded metrics, in its documentation.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any, cast

from vivavoce.conversations.format import Format, Loss, Place, Record, Row
from vivavoce.conversations.shapes import Message
from vivavoce.errors import Problem, UsageError
from vivavoce.features.formats.conversion import Suite, SuiteFormat
from vivavoce.files.plain_yaml import read_yaml
from vivavoce.files.rows import read_rows
from vivavoce.safe_regex import expression

_ROLES = ("system", "developer", "user", "assistant", "tool")
_RESULT_KEYS = ("latencyMs", "cost", "vars", "tokenUsage")


def _fits(record: Record) -> bool:
    return {"testCase", "promptIdx", "provider"} <= (record.fields or {}).keys()


def _read(records: Iterable[Record], loss: Loss) -> Iterator[tuple[Place, Row]]:
    together: dict[tuple[str, str], tuple[Place, Row]] = {}
    used: dict[str, int] = {}
    for record in records:
        loss.line, loss.conversation = record.place.line, None
        result = mapping_of(record.value)
        if not _fits(record):
            loss.add_broken("not a result of promptfoo")
            continue
        row, conversation = _row(result, loss), mapping_of(mapping_of(result["testCase"]).get("metadata"))
        if row is None:
            continue
        if (identity := conversation.get("conversationId")) is None:
            name = str(row["id"])
            used[name] = used.get(name, 0) + 1
            yield record.place, row if used[name] == 1 else {**row, "id": f"{name}-{used[name]}"}
            continue
        key = (str(identity), _provider(result))
        before = together.get(key)
        several = {**row, "id": f"{identity} on {key[1]}"}
        together[key] = (record.place, several) if before is None else (before[0], _join(before[1], several))
    yield from together.values()


def _row(result: dict[str, Any], loss: Loss) -> Row | None:
    case = mapping_of(result["testCase"])
    name = str(case.get("description") or f"test-{result.get('testIdx', 0)}")
    loss.conversation = name
    output = mapping_of(result.get("response")).get("output")
    if output is None:
        loss.add_dropped("result without an answer: the target had an error")
        return None
    answer = output if isinstance(output, str) else json.dumps(output, ensure_ascii=False)
    grading = mapping_of(result.get("gradingResult"))
    graders: dict[str, Any] = {}
    for part in map(mapping_of, list_of(grading.get("componentResults"))):
        assertion = mapping_of(part.get("assertion"))
        called = str(assertion.get("metric") or f"{assertion.get('type')}: {assertion.get('value')}")[:120]
        graders[called] = {"score": part.get("score"), "passed": part.get("pass"), "reason": part.get("reason")}
    passed = result.get("success")
    labels: dict[str, Any] = {"passed": passed if isinstance(passed, bool) else None, "score": result.get("score")}
    metadata = {key: result[key] for key in _RESULT_KEYS if result.get(key)}
    return {
        "id": name,
        "messages": [
            *_prompt_messages(mapping_of(result.get("prompt")).get("raw")),
            {"role": "assistant", "content": answer},
        ],
        "labels": {**labels, "graders": graders} if graders else labels,
        "metadata": {**metadata, "provider": _provider(result)},
    }


def _provider(result: dict[str, Any]) -> str:
    provider = mapping_of(result["provider"])
    return str(provider.get("label") or provider.get("id") or result["provider"])


def _prompt_messages(raw: Any) -> list[Message]:
    """Return the messages of a prompt: those of a chat, or what the user said."""
    text = raw if isinstance(raw, str) else json.dumps(raw, ensure_ascii=False)
    try:
        chat = json.loads(text)
    except ValueError:
        chat = None
    messages = [mapping_of(entry) for entry in cast("list[Any]", chat)] if isinstance(chat, list) else []
    if messages and all(
        message.get("role") in _ROLES and isinstance(message.get("content"), str) for message in messages
    ):
        return messages
    return [{"role": "user", "content": text}]


def _join(before: Row, row: Row) -> Row:
    """Return two turns as one conversation; a prompt that hands the conversation on has it already."""
    earlier, later = cast("list[Message]", before["messages"]), cast("list[Message]", row["messages"])
    handed_on = later[: len(earlier)] == earlier
    labels, more = before["labels"], row["labels"]
    both = (labels["passed"], more["passed"])
    graders = {**labels.get("graders", {}), **more.get("graders", {})}
    return {
        **before,
        "messages": later if handed_on else [*earlier, *later],
        "labels": {"passed": None if None in both else all(both), **({"graders": graders} if graders else {})},
    }


FORMAT = Format("promptfoo", "promptfoo results", _fits, _read, lists=(("results", "results"),))


_FILE = "file://"
_CODE = (".py", ".js", ".ts", ".mjs", ".cjs", ".sh", ".rb")


def mapping_of(value: Any) -> dict[str, Any]:
    """Return a value if it is a mapping, else an empty one."""
    return (
        {str(key): item for key, item in cast("Mapping[Any, Any]", value).items()} if isinstance(value, Mapping) else {}
    )


def list_of(value: Any) -> list[Any]:
    """Return a value as a list; nothing is an empty one."""
    if value is None:
        return []
    return cast("list[Any]", value) if isinstance(value, list) else [value]


def text_of_file(value: str, base: Path, loss: Loss) -> str | None:
    """Return a text, or that of the file that it names; None for code, which is not run."""
    name = value.removeprefix(_FILE)
    is_reference = value.startswith(_FILE) or (
        "\n" not in value and "{{" not in value and value.endswith((".txt", ".json", ".yaml", ".yml", ".md", *_CODE))
    )
    if not is_reference:
        return value
    if name.rpartition(":")[0].endswith(_CODE) or name.endswith(_CODE):
        loss.add_dropped(f"code in {name}")
        return None
    return _text(base / name)


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "not UTF-8"
        raise UsageError(Problem(f"is named by the configuration and cannot be read: {why}", path)) from error


def read_tests(value: Any, base: Path, loss: Loss) -> Iterator[dict[str, Any]]:
    """Yield the tests of a configuration and of the files that it names."""
    for item in list_of(value):
        if not isinstance(item, str):
            yield mapping_of(item)
            continue
        path = base / item.removeprefix(_FILE)
        match path.suffix.lower():
            case ".yaml" | ".yml" | ".json":
                yield from map(mapping_of, list_of(read_yaml(path, _text(path))))
            case ".jsonl":
                yield from (row for _, row in read_rows(path))
            case ".csv":
                yield from _table(path, loss)
            case _:
                loss.add_dropped(f"tests in {item}")


def _table(path: Path, loss: Loss) -> Iterator[dict[str, Any]]:
    """Yield a test for each row; `__expected…` columns are assertions in promptfoo's short form, `type: value`."""
    for row in csv.DictReader(_text(path).splitlines()):
        cells = {str(key): value for key, value in cast("dict[Any, Any]", row).items() if value}
        asserts: list[dict[str, Any]] = []
        for key in [key for key in cells if key.startswith("__expected")]:
            kind, colon, value = str(cells.pop(key)).partition(":")
            short = (
                {"type": kind.strip(), "value": value.strip()} if colon else {"type": "equals", "value": kind.strip()}
            )
            asserts.append(short)
        test: dict[str, Any] = {"assert": asserts}
        for key in [key for key in cells if key.startswith("__")]:
            value = cells.pop(key)
            if key == "__description":
                test["description"] = value
            elif key.startswith("__metadata:"):
                test.setdefault("metadata", {})[key.removeprefix("__metadata:")] = value
            else:
                loss.add_dropped(f"column '{key}'")
        yield {**test, "vars": cells}


Assertion = dict[str, Any]


def translate(assertion: Mapping[str, Any], variables: Vars, loss: Loss) -> Iterator[Assertion]:
    """Yield what an assertion says, in our words; nothing, and a line in the report, where it cannot be said."""
    kind = str(assertion.get("type"))
    if kind == "assert-set":
        yield from _set(assertion, variables, loss)
        return
    plain = kind.removeprefix("not-")
    make = _KINDS.get(plain)
    if make is None:
        loss.add_dropped(f"assertion '{kind}'")
        return
    for key in assertion.keys() & {"transform", "provider", "rubricPrompt", "contextTransform"}:
        loss.add_dropped(f"'{key}' of an assertion")
    if "threshold" in assertion and plain != "latency":
        loss.add_dropped(f"'threshold' of '{kind}'")
    translation = make(_value(assertion, variables), assertion)
    if translation is None:
        loss.add_dropped(f"assertion '{kind}' with this value")
        return
    translation = _negate(translation) if kind != plain else translation
    weight = assertion.get("weight")
    if weight == 0:
        loss.add_dropped("assertion with the weight 0")
        return
    yield {**translation, "weight": weight} if isinstance(weight, int | float) and weight != 1 else translation


def _set(assertion: Mapping[str, Any], variables: Vars, loss: Loss) -> Iterator[Assertion]:
    if "threshold" in assertion:
        loss.add_dropped("'threshold' of 'assert-set'")
    inner = [
        part
        for item in cast("list[Any]", assertion.get("assert") or [])
        if isinstance(item, Mapping)
        for part in translate(cast("Mapping[str, Any]", item), variables, loss)
    ]
    if inner:
        yield {"all": inner}


def _value(assertion: Mapping[str, Any], variables: Vars) -> Any:
    value = assertion.get("value")
    if not isinstance(value, str):
        return value
    for name, known in variables.items():
        value = re.sub(r"\{\{\s*" + re.escape(name) + r"\s*\}\}", lambda _, known=known: str(known), value)
    return value


def _negate(assertion: Assertion) -> Assertion:
    if set(assertion) == {"contains"}:
        return {"not_contains": assertion["contains"]}
    return {"not": assertion}


def _texts(value: Any) -> list[str]:
    if isinstance(value, str):
        return [word.strip() for word in value.split(",")]
    return [str(item) for item in cast("list[Any]", value)] if isinstance(value, list) else []


def _exactly(text: Any) -> Assertion:
    return {"regex": re.escape(str(text))}


def _pattern(value: Any, _: Mapping[str, Any]) -> Assertion | None:
    try:
        expression(str(value))
    except UsageError:
        return None
    return {"regex": str(value)}


def _schema(value: Any, _: Mapping[str, Any]) -> Assertion | None:
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            return None
    if value is None or value == {}:
        return {"json_schema": {"type": ["object", "array", "string", "number", "boolean", "null"]}}
    return {"json_schema": value} if isinstance(value, dict) else None


def _latency(_: Any, assertion: Mapping[str, Any]) -> Assertion | None:
    limit = assertion.get("threshold")
    return {"latency": limit / 1000} if isinstance(limit, int | float) and limit > 0 else None


def _judge(value: Any, _: Mapping[str, Any]) -> Assertion | None:
    entries = cast("list[Any]", value) if isinstance(value, list) else [value]
    criteria = [entry for entry in entries if isinstance(entry, str)]
    if not criteria or any("{{" in criterion or criterion.startswith("file://") for criterion in criteria):
        return None
    assertions = [{"judged": criterion} for criterion in criteria]
    return assertions[0] if len(assertions) == 1 else {"all": assertions}


def _fact(value: Any, _: Mapping[str, Any]) -> Assertion | None:
    return {"judged": f"The answer does not contradict this: {value}"} if isinstance(value, str) else None


def _any(texts: list[str], make: Callable[[Any], Assertion]) -> Assertion | None:
    return {"any": [make(text) for text in texts]} if texts else None


def _tool(value: Any, _: Mapping[str, Any]) -> Assertion | None:
    name = cast("Mapping[str, Any]", value).get("name") if isinstance(value, Mapping) else value
    return {"calls": name} if isinstance(name, str) else None


def _contains(text: Any) -> Assertion:
    return {"contains": str(text)}


_KINDS: dict[str, Callable[[Any, Mapping[str, Any]], Assertion | None]] = {
    "contains": lambda value, _: _exactly(value),
    "icontains": lambda value, _: _contains(value),
    "contains-any": lambda value, _: _any(_texts(value), _exactly),
    "contains-all": lambda value, _: {"all": [_exactly(text) for text in _texts(value)]} if _texts(value) else None,
    "icontains-any": lambda value, _: _any(_texts(value), _contains),
    "icontains-all": lambda value, _: {"contains": _texts(value)} if _texts(value) else None,
    "equals": lambda value, _: {"equals": value} if isinstance(value, str) else None,
    "starts-with": lambda value, _: {"regex": rf"\A{re.escape(str(value))}"},
    "regex": _pattern,
    "is-json": _schema,
    "latency": _latency,
    "llm-rubric": _judge,
    "model-graded-closedqa": _judge,
    "g-eval": _judge,
    "factuality": _fact,
    "model-graded-factuality": _fact,
    "is-refusal": lambda _, __: {"metric": "refusal"},
    "trajectory:tool-used": _tool,
}


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


def _fits_suite(path: Path, text: str) -> bool:
    if path.suffix.lower() not in (".yaml", ".yml", ".json"):
        return False
    keys = set(re.findall(r"^\s*\"?(\w+)\"?:", text, re.MULTILINE))
    return {"prompts", "tests"} <= keys and bool({"providers", "targets"} & keys)


def _read_suite(path: Path, text: str, loss: Loss) -> Suite:
    data = mapping_of(read_yaml(path, text))
    base = path.parent
    loss.conversation = None
    for key in _UNTRANSLATED:
        if data.get(key):
            loss.add_dropped(f"'{key}'")
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
        fields = mapping_of(item) if isinstance(item, Mapping) else {"raw": item}
        raw, label = fields.get("raw") or fields.get("id"), str(fields.get("label") or f"prompt-{index}")
        text = text_of_file(raw, base, loss) if isinstance(raw, str) else None
        if text is None:
            loss.add_dropped(f"prompt '{label}'")
            continue
        yield _prompt(label, text, loss)


def _prompt(label: str, text: str, loss: Loss) -> Prompt:
    """Return a prompt of a text, or of the messages of a chat that end with the user."""
    if "_conversation" in text:
        variables = [name for name in _VARIABLE.findall(text) if "." not in name and not name.startswith("_")]
        users = [name for name in variables if "system" not in name]
        loss.add_guess(f"user message in prompt '{label}', which passes on the conversation: the last variable")
        system = next((name for name in variables if "system" in name), None)
        instructions = f"{{{{{system}}}}}" if system else None
        return Prompt(label, f"{{{{{users[-1]}}}}}" if users else "", instructions)
    messages = _messages(text)
    if messages is None:
        return Prompt(label, text)
    system = [str(message.get("content")) for message in messages if message.get("role") == "system"]
    others = [message for message in messages if message.get("role") != "system"]
    if len(others) > 1:
        loss.add_dropped(f"messages before the user's last in prompt '{label}'", count=len(others) - 1)
    return Prompt(label, str(others[-1].get("content")) if others else "", "\n\n".join(system) or None)


def _messages(text: str) -> list[dict[str, Any]] | None:
    if not text.lstrip().startswith(("[", "- ")):
        return None
    quoted = re.sub(r"(?<![\"'\w])(\{\{[^}]*\}\})(?![\"'\w])", r'"\1"', text)
    try:
        document = read_yaml(Path("prompt"), quoted)
    except ValueError:
        return None
    return [mapping_of(entry) for entry in cast("list[Any]", document)] if isinstance(document, list) else None


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
            question = fill(prompt.user, variables, loss)
            assertions = [
                translation for item in test["assert"] for translation in translate(mapping_of(item), variables, loss)
            ]
            conversations.setdefault(name, []).append((question, assertions))
            if "threshold" in test:
                loss.add_dropped("'threshold' of a test")
    for name, turns in conversations.items():
        row: dict[str, Any] = {"id": f"{name} ({prompt.label})" if several else name}
        row["input"] = turns[0][0] if len(turns) == 1 else [question for question, _ in turns]
        if any(assertions for _, assertions in turns):
            row["expect"] = [assertions[0] if len(assertions) == 1 else assertions or None for _, assertions in turns]
        yield {**row, "tags": [prompt.label]} if several else row


def _combinations(variables: Vars) -> Iterator[dict[str, Any]]:
    """Yield the variables of each test that a test with lists of values stands for."""
    lists = [cast("list[Any]", value) if isinstance(value, list) else [value] for value in variables.values()]
    for values in product(*lists):
        yield dict(zip(variables, values, strict=True))


def fill(template: str, variables: Vars, loss: Loss) -> str:
    """Return a template with its variables filled in; what is more than a variable stays and is reported."""

    def value_of(match: re.Match[str]) -> str:
        value: Any = variables
        for step in match[1].split("."):
            value = mapping_of(value).get(step)
        if value is None:
            loss.add_dropped(f"variable '{match[1]}', which no test sets")
        return match[0] if value is None else str(value)

    text = _VARIABLE.sub(value_of, template)
    if _TEMPLATE.search(_VARIABLE.sub("", template)):
        loss.add_dropped("expression of a template")
    return text


def _targets(providers: list[Any], prompts: list[Prompt], default: Vars, loss: Loss) -> Iterator[dict[str, Any]]:
    systems = dict.fromkeys(prompt.system for prompt in prompts)
    system = next(iter(systems), None) if len(systems) == 1 else None
    if len(systems) > 1:
        loss.add_dropped("prompts with different system messages: give each target one")
    if system is not None and (known := mapping_of(default.get("vars"))):
        system = fill(system, known, loss)
    if not providers:
        loss.add_dropped("the provider: not named")
    for item in providers or [{}]:
        target = _target(item, loss)
        if system is not None and target["kind"] == "openai":
            target["system_prompt"] = system
        elif system is not None:
            loss.add_dropped("system message: a target of this kind has its own")
        yield target


@dataclass(slots=True)
class _Provider:
    id: str
    label: str | None = None
    config: dict[str, Any] = field(default_factory=dict[str, Any])


def _target(item: Any, loss: Loss) -> dict[str, Any]:
    provider = _suite_provider(item)
    name_fields = {"name": provider.label} if provider.label else {}
    kind, _, rest = provider.id.partition(":")
    if kind in _CHAT and rest:
        address, key = _CHAT[kind]
        model = rest.removeprefix("chat:").removeprefix("messages:")
        settings = {ours: provider.config[theirs] for theirs, ours in _SETTINGS.items() if theirs in provider.config}
        for name in provider.config.keys() - {*_SETTINGS, "apiBaseUrl", "apiKey", "tools"}:
            loss.add_dropped(f"'{name}' of a provider")
        return {
            "kind": "openai",
            **name_fields,
            "base_url": str(provider.config.get("apiBaseUrl") or address),
            "model_handles": [model],
            **({} if kind == "openai" else {"api_key_env": key}),
            **({"settings": settings} if settings else {}),
            **({"tools": provider.config["tools"]} if isinstance(provider.config.get("tools"), list) else {}),
        }
    if kind in ("http", "https"):
        return {**name_fields, **_http(provider, loss)}
    loss.add_dropped(f"provider '{provider.id}': write a function reply(message) that calls it, in bot.py")
    return {**_ANY_BOT, **name_fields}


def _suite_provider(item: Any) -> _Provider:
    if isinstance(item, str):
        return _Provider(item)
    fields = mapping_of(item)
    if "id" not in fields and len(fields) == 1:  # {"openai:gpt-4o": {config: …}}
        [(name, rest)] = fields.items()
        fields = {**mapping_of(rest), "id": name}
    return _Provider(str(fields.get("id") or "none"), fields.get("label"), mapping_of(fields.get("config")))


def _http(provider: _Provider, loss: Loss) -> dict[str, Any]:
    config = provider.config
    url = str(config.get("url") or provider.id)
    for name in config.keys() - {"url", "method", "headers", "body"}:
        loss.add_dropped(f"'{name}' of an HTTP provider")
    loss.add_guess("the reply path of an HTTP provider: set it as reply of the target")
    method = str(config.get("method") or "POST").upper()
    body = _replace_prompt(config.get("body"))
    return {
        "kind": "http",
        "url": url,
        "method": method,
        **({"headers": config["headers"]} if isinstance(config.get("headers"), dict) else {}),
        **({} if body is None else {"body": body}),
        "reply": "reply",
    }


def _replace_prompt(body: Any) -> Any:
    """Return a body in which the prompt is the message of the user."""
    if isinstance(body, str):
        return re.sub(r"\{\{\s*prompt\s*\}\}", "{{message}}", body)
    if isinstance(body, dict):
        return {str(key): _replace_prompt(value) for key, value in cast("dict[Any, Any]", body).items()}
    if isinstance(body, list):
        return [_replace_prompt(value) for value in cast("list[Any]", body)]
    return body


SUITE = SuiteFormat("promptfoo", "promptfoo", _fits_suite, _read_suite)
