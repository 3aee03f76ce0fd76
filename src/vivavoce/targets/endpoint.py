"""`EndpointTarget`: a deployed bot by its address, or by an id whose address the environment holds."""

from __future__ import annotations

import os
import re

from vivavoce.errors import UsageError
from vivavoce.targets.http import HttpTarget
from vivavoce.targets.openai import OpenAITarget
from vivavoce.targets.target import Opening, Session, Target
from vivavoce.wire.http import Limits


class EndpointTarget:
    """A bot behind an address.

    `endpoint_id` is a web address, or a name such as `chatbot-prod` whose address stands in the environment variable
    `VIVAVOCE_ENDPOINT_CHATBOT_PROD`. `http://host/v1#MODEL` is asked as an OpenAI-compatible endpoint; any other
    address gets `{"message": …, "conversation_id": …}` by POST, and `reply` is the path of the reply in its answer. For
    other bodies, headers and sessions there is `HttpTarget`. `api_key` is sent as a bearer token.

    Raises:
        UsageError: the id has no address, or the address is not valid.
    """

    def __init__(
        self, endpoint_id: str, *, reply: str = "reply", api_key: str | None = None, timeout: float = 300.0
    ) -> None:
        self.name = endpoint_id
        address = endpoint_id if _is_address(endpoint_id) else _address_of(endpoint_id)
        limits = Limits(timeout=timeout)
        base_url, _, model = address.partition("#")
        self._inner: Target
        if model:
            self._inner = OpenAITarget(endpoint_id, base_url, model, api_key=api_key, limits=limits)
        else:
            body = {"message": "{{ message }}", "conversation_id": "{{ conversation_id }}"}
            headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
            self._inner = HttpTarget(endpoint_id, base_url, body=body, reply=reply, headers=headers, limits=limits)
        self.stateless = self._inner.stateless

    async def open(self, opening: Opening) -> Session:
        """Begin a conversation."""
        return await self._inner.open(opening)

    async def close(self) -> None:
        """Close the connections."""
        await self._inner.close()


def _is_address(text: str) -> bool:
    return text.startswith(("http://", "https://"))


def _address_of(endpoint_id: str) -> str:
    variable = "VIVAVOCE_ENDPOINT_" + re.sub(r"\W+", "_", endpoint_id).upper()
    address = os.environ.get(variable)
    if not address:
        raise UsageError(f"the endpoint '{endpoint_id}' has no address: set {variable} to it, or give the address")
    return address
