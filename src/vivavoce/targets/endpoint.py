"""`EndpointTarget`: a deployed bot by its address, or by an id whose address a file holds.

Rhesis has a body template in `request_mapping`, with `{{ input }}` for the message, and paths into the answer in
`response_mapping`. Source: its documentation of request and response mappings.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from vivavoce.errors import Problem, UsageError, did_you_mean
from vivavoce.targets.http import HttpTarget
from vivavoce.targets.openai import OpenAITarget
from vivavoce.targets.target import Opening, Session, Target, knows_users
from vivavoce.wire.http import Limits

IDS = ("conversation_id", "session_id", "thread_id", "chat_id", "dialog_id", "dialogue_id", "context_id")
"""What Rhesis calls the id of a conversation, in both mappings."""

_UNREAD = frozenset(
    (
        *("id", "nano_id", "name", "description", "connection_type", "project_id", "environment", "config_source"),
        *("created_at", "updated_at", "status", "status_id", "tags", "endpoint_metadata", "user_id"),
        "organization_id",
    )
)
"""Keys that say nothing about how an endpoint is asked."""
_READ = (
    "url",
    "method",
    "endpoint_path",
    "request_headers",
    "request_mapping",
    "response_mapping",
    "auth_type",
    "auth_token",
)
_VARIABLE = re.compile(r"\{\{-?\s*(\w+)\s*((?:\|\s*\w+\s*)*)-?\}\}")
_TOKEN = re.compile(r"\{\{\s*auth_token\s*\}\}")
_BARE = re.compile(r"(?<!\")(\{\{[^{}]*\}\})(?!\")")
_PATH = re.compile(r"\$(?:\.\w[\w-]*|\[\d+\])*")


@dataclass(frozen=True, slots=True)
class Endpoint:
    """How a bot is asked over HTTP; without a `body` as `EndpointTarget` asks, without a `reply` at its own path."""

    url: str
    method: str = "POST"
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    body: object = None
    reply: str | None = None
    session: str | None = None


def endpoint_of(path: Path, name: str) -> Endpoint:
    """Return an endpoint of a file by its name or id.

    Raises:
        UsageError: the file cannot be read, has no such endpoint, or describes it in a way that is not understood.
    """
    entries = dict(_entries(_read(path), path))
    if name not in entries:
        raise UsageError(Problem(f"no endpoint '{name}'{did_you_mean(name, entries)}", path))
    entry = entries[name]
    try:
        return Endpoint(entry) if isinstance(entry, str) else _described(entry)
    except ValueError as error:
        raise UsageError(Problem(f"{name}: {error}", path)) from error


def _read(path: Path) -> object:
    try:
        return cast("Any", YAML(typ="safe", pure=True)).load(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise UsageError(Problem(f"cannot be read: {error.strerror}", path)) from error
    except (YAMLError, UnicodeDecodeError) as error:
        raise UsageError(Problem(f"is not YAML or JSON: {' '.join(str(error).split())}", path)) from error


def _entries(document: object, path: Path) -> Iterator[tuple[str, str | Mapping[str, Any]]]:
    """Yield the endpoints by their names and ids: of a mapping, of a list, or the only one."""
    if isinstance(document, Mapping):
        rows = cast("Mapping[str, Any]", document)
        if "url" in rows:
            yield from _named(rows)
            return
        yield from ((str(key), row) for key, row in rows.items() if isinstance(row, str | Mapping))
        return
    if not isinstance(document, list):
        raise UsageError(Problem("holds no endpoints: a mapping of names to addresses or descriptions is needed", path))
    for row in cast("list[Any]", document):
        if isinstance(row, Mapping):
            yield from _named(cast("Mapping[str, Any]", row))


def _named(row: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    yield from ((str(row[key]), row) for key in ("id", "nano_id", "name") if row.get(key) is not None)


def _described(row: Mapping[str, Any]) -> Endpoint:
    unknown = next(
        (key for key, value in row.items() if value not in (None, {}, []) and key not in {*_READ, *_UNREAD}), None
    )
    if unknown is not None:
        raise ValueError(f"'{unknown}' is not supported{did_you_mean(unknown, _READ)}")
    kind = str(row.get("connection_type") or "REST")
    if kind.upper() != "REST":
        raise ValueError(f"connection_type is {kind}; only REST is supported, so use a function as the target")
    if not isinstance(row.get("url"), str):
        raise ValueError("has no url")
    answers = _structure(row.get("response_mapping"), "response_mapping")
    output = answers.get("output")
    given = next((answers[name] for name in IDS if answers.get(name)), None)
    session = None if given is None else _path(given)
    path = str(row.get("endpoint_path") or "")
    return Endpoint(
        url=str(row["url"]).rstrip("/") + f"/{path.lstrip('/')}" if path else str(row["url"]),
        method=str(row.get("method") or "POST"),
        headers=_headers(row),
        body=_body(row.get("request_mapping"), "session" if session else "conversation_id"),
        reply=None if output is None else _path(output),
        session=session,
    )


def _headers(row: Mapping[str, Any]) -> dict[str, str]:
    """Return the headers of a request, with the token that the endpoint has, where it has one."""
    token, kind = row.get("auth_token"), str(row.get("auth_type") or "bearer_token")
    if token and kind != "bearer_token":
        raise ValueError(f"auth_type is {kind}; only bearer_token is supported, so set the header in request_headers")
    written = {key: str(value) for key, value in _structure(row.get("request_headers"), "request_headers").items()}
    headers = {key: _TOKEN.sub(lambda _: str(token), value) if token else value for key, value in written.items()}
    named = any(key.lower() == "authorization" for key in headers)
    return headers if named or not token else {**headers, "Authorization": f"Bearer {token}"}


def _structure(value: object, key: str) -> dict[str, Any]:
    """Return a mapping that may stand as JSON text, in which a variable may stand without quotation marks."""
    if value is None:
        return {}
    if isinstance(value, str):
        try:
            value = json.loads(_BARE.sub(lambda match: json.dumps(match[1]), value))
        except ValueError as error:
            raise ValueError(f"{key} is not JSON: {error}") from error
    if not isinstance(value, Mapping):
        raise ValueError(f"{key} is not a mapping")
    return dict(cast("Mapping[str, Any]", value))


def _body(mapping: object, conversation: str) -> object:
    """Return a body with our names of variables; `conversation` is the one that holds the id of a conversation."""
    if mapping is None:
        return None
    return _renamed(_structure(mapping, "request_mapping"), conversation)


def _renamed(value: object, conversation: str) -> object:
    if isinstance(value, Mapping):
        return {key: _renamed(inner, conversation) for key, inner in cast("Mapping[str, object]", value).items()}
    if isinstance(value, list):
        return [_renamed(inner, conversation) for inner in cast("list[object]", value)]
    if not isinstance(value, str):
        return value

    def ours(match: re.Match[str]) -> str:
        name, filters = match[1], match[2].replace("|", " ").split()
        if wrong := next((one for one in filters if one != "tojson"), None):
            raise ValueError(f"request_mapping: the filter '{wrong}' is not supported")
        names = {"input": "message", "messages": "messages", **dict.fromkeys(IDS, conversation)}
        if name not in names:
            raise ValueError(f"request_mapping: the variable '{name}' is not supported{did_you_mean(name, names)}")
        return f"{{{{ {names[name]} }}}}"

    return _VARIABLE.sub(ours, value)


def _path(expression: object) -> str:
    """Return our path for a JSONPath: `$.choices[0].message.content` is `choices.0.message.content`."""
    if not isinstance(expression, str) or not _PATH.fullmatch(expression.strip()):
        raise ValueError(f"response_mapping: {expression!r} is not understood; a path such as $.choices[0].text is")
    path = re.sub(r"\[(\d+)\]", r".\1", expression.strip())[1:].lstrip(".")
    return path or "$"


class EndpointTarget:
    """A bot behind an address.

    `endpoint_id` is a web address, or a name such as `chatbot-prod` whose address is in the environment variable
    `VIVAVOCE_ENDPOINT_CHATBOT_PROD`, or in a file: `endpoints`, or else the one that VIVAVOCE_ENDPOINTS names, or else
    `endpoints.yaml` or `endpoints.json` of the current folder. `endpoint_file` documents the format.

    `http://host/v1#MODEL` is asked as an OpenAI-compatible endpoint; any other address gets
    `{"message": …, "conversation_id": …}` by POST, unless the file says otherwise, and `reply` is the path of the reply
    in its answer. For other bodies, headers and sessions there is `HttpTarget`. `api_key` is sent as a bearer token.

    Raises:
        UsageError: the id has no address, the address is not valid, or the file cannot be read.
    """

    def __init__(
        self,
        endpoint_id: str,
        *,
        reply: str = "reply",
        api_key: str | None = None,
        timeout: float = 300.0,
        endpoints: str | os.PathLike[str] | None = None,
    ) -> None:
        self.name = endpoint_id
        found = Endpoint(endpoint_id) if _is_address(endpoint_id) else _found(endpoint_id, endpoints)
        limits = Limits(timeout=timeout)
        base_url, _, model = found.url.partition("#")
        self._inner: Target
        if model:
            self._inner = OpenAITarget(endpoint_id, base_url, model, api_key=api_key, limits=limits)
        else:
            headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
            self._inner = HttpTarget(
                endpoint_id,
                base_url,
                body=_BODY if found.body is None else found.body,
                reply=reply if found.reply is None else found.reply,
                method=found.method,
                headers={**found.headers, **headers},
                session=found.session,
                limits=limits,
            )
        self.stateless = self._inner.stateless
        self.knows_users = knows_users(self._inner)

    async def open(self, opening: Opening) -> Session:
        """Begin a conversation."""
        return await self._inner.open(opening)

    async def close(self) -> None:
        """Close the connections."""
        await self._inner.close()


_BODY = {"message": "{{ message }}", "conversation_id": "{{ conversation_id }}"}
_FILES = ("endpoints.yaml", "endpoints.yml", "endpoints.json")


def _is_address(text: str) -> bool:
    return text.startswith(("http://", "https://"))


def _found(endpoint_id: str, endpoints: str | os.PathLike[str] | None) -> Endpoint:
    """Return an endpoint by its name: of the file that is given, of the environment, of the file of the workspace."""
    if endpoints is not None:
        return endpoint_of(Path(endpoints), endpoint_id)
    variable = "VIVAVOCE_ENDPOINT_" + re.sub(r"\W+", "_", endpoint_id).upper()
    if address := os.environ.get(variable):
        return Endpoint(address)
    named = os.environ.get("VIVAVOCE_ENDPOINTS")
    places = [Path(named)] if named else [path for path in map(Path, _FILES) if path.is_file()]
    if places:
        return endpoint_of(places[0], endpoint_id)
    raise UsageError(
        f"the endpoint '{endpoint_id}' has no address: set {variable} to it, write it into {_FILES[0]}, "
        "or give the address"
    )
