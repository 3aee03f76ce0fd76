"""`EndpointTarget`: a deployed bot by its address, or by an id whose address a file or the environment holds."""

from __future__ import annotations

import os
import re
from pathlib import Path

from vivavoce.errors import UsageError
from vivavoce.targets.endpoint_file import Endpoint, endpoint_of
from vivavoce.targets.http import HttpTarget
from vivavoce.targets.openai import OpenAITarget
from vivavoce.targets.target import Opening, Session, Target
from vivavoce.targets.user import knows_users
from vivavoce.wire.http import Limits


class EndpointTarget:
    """A bot behind an address.

    `endpoint_id` is a web address, or a name such as `chatbot-prod` whose address stands in the environment variable
    `VIVAVOCE_ENDPOINT_CHATBOT_PROD`, or in a file: `endpoints`, or else the one that VIVAVOCE_ENDPOINTS names, or else
    `endpoints.yaml` or `endpoints.json` of the current folder. `endpoint_file` says what may stand there.

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
