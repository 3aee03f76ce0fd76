"""The addresses of providers, and the environment variables for their addresses and keys."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from vivavoce.errors import UsageError
from vivavoce.wire.http import is_loopback

OPENAI = "https://api.openai.com/v1"
OPENROUTER = "https://openrouter.ai/api/v1"
_PROVIDERS = {OPENAI: "openai", OPENROUTER: "openrouter"}
_PORTS = {"http": 80, "https": 443}


def identity_at(address: str, model: str) -> str:
    """Return the identity of a model: `PROVIDER:MODEL` at an address that a provider fixed, else `ADDRESS#MODEL`."""
    place = plain_address(address)
    provider = _PROVIDERS.get(place)
    return f"{provider}:{model}" if provider else f"{place}#{model}"


def plain_address(address: str) -> str:
    """Return an address in the one form that records hold, without user, password, query and fragment."""
    parts = urlsplit(address)
    host = parts.hostname or ""
    host_text = f"[{host}]" if ":" in host else host
    port = "" if parts.port in (None, _PORTS.get(parts.scheme)) else f":{parts.port}"
    return f"{parts.scheme}://{host_text}{port}{parts.path.rstrip('/')}"


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A provider: its usual address, None where each customer has one, and the environment variables for it.

    `path` is added to an address that does not end in it, `port` to one that is a mere host. A key is optional where
    the usual address is this machine.
    """

    address: str | None
    address_in: str | None = None
    key_in: str | None = None
    path: str = ""
    port: int | None = None

    def base_url(self, name: str) -> str:
        """Return the address for a model of that name.

        Raises:
            UsageError: there is no usual address, and the environment has none.
        """
        address_given = os.environ.get(self.address_in) if self.address_in else None
        if address_given and self.port and "://" not in address_given:
            address_given = _from_host(address_given, self.port)
        address = (address_given or self.address or "").rstrip("/")
        if not address:
            raise UsageError(f"model '{name}' needs an address: set the environment variable {self.address_in}")
        return address if address.endswith(self.path) else address + self.path

    def key(self, name: str, base_url: str) -> str | None:
        """Return the key that the environment has for a model of that name.

        Raises:
            UsageError: it has none, and neither the provider nor the address is on this machine.
        """
        optional = is_loopback(base_url) or is_loopback(self.address or "")
        return key_of(name, [self.key_in] if self.key_in else [], optional=optional)


ENDPOINTS: Mapping[str, Endpoint] = {
    "openai": Endpoint(OPENAI, "OPENAI_BASE_URL", "OPENAI_API_KEY"),
    "azure": Endpoint(None, "AZURE_OPENAI_ENDPOINT", "AZURE_OPENAI_API_KEY", path="/openai/v1"),
    "ollama": Endpoint("http://localhost:11434", "OLLAMA_HOST", path="/v1", port=11434),
    "vllm": Endpoint("http://localhost:8000", "VLLM_BASE_URL", "VLLM_API_KEY", path="/v1"),
    "openrouter": Endpoint(OPENROUTER, key_in="OPENROUTER_API_KEY"),
}
"""Source of Azure's path: Microsoft's reference of the v1 API, which takes the key as a bearer and no API version."""


def key_of(name: str, variables: Iterable[str], *, optional: bool = False) -> str | None:
    """Return the first key that these variables of the environment hold.

    Raises:
        UsageError: none does, and the model needs one.
    """
    names = list(variables)
    key_found = next((key for variable in names if (key := os.environ.get(variable))), None)
    if key_found is None and names and not optional:
        raise UsageError(f"model '{name}' needs a key: set the environment variable {names[0]}")
    return key_found


def _from_host(host: str, port: int) -> str:
    """Return the address of `host`, `host:port` or `:port`; servers read the same variable as what to listen on."""
    match = re.fullmatch(r"(\[[^]]*\]|[^:]*)(?::(\d+))?", host)
    if match is None:
        return f"http://{host}"
    place = "localhost" if match[1] in ("", "0.0.0.0", "[::]") else match[1]
    return f"http://{place}:{match[2] or port}"
