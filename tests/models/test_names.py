from __future__ import annotations

import sys

import pytest

from vivavoce.errors import MissingExtra, UsageError
from vivavoce.messages import HumanMessage
from vivavoce.models.model import Request, identity_of
from vivavoce.models.names import PROVIDERS, is_version_of, model_identity, model_name, open_model
from vivavoce.testing import LoopbackServer

ASKED = Request([HumanMessage(content="hi")])
KEYS = {
    "azure": "AZURE_OPENAI_API_KEY",
    "openrouter": "OPENROUTER_API_KEY",
    "anthropic": "ANTHROPIC_API_KEY",
    "google": "GOOGLE_API_KEY",
    "mistral": "MISTRAL_API_KEY",
    "groq": "GROQ_API_KEY",
    "cohere": "CO_API_KEY",
    "deepseek": "DEEPSEEK_API_KEY",
}


@pytest.fixture(autouse=True)
def no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*KEYS.values(), "GEMINI_API_KEY", "OLLAMA_HOST", "VLLM_BASE_URL", "VLLM_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", "https://mine.openai.azure.com")


@pytest.mark.parametrize("name", ["openai:m-1", "openai/m-1"])
async def test_an_openai_name_uses_the_environment(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with LoopbackServer() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url + "/")
        monkeypatch.setenv("OPENAI_API_KEY", "sk-1")
        model = open_model(name, settings={"temperature": 1})
        assert (await model.complete(ASKED)).text == "You said: hi"
        await model.close()
        assert server.requests[0].headers["Authorization"] == "Bearer sk-1"
        assert server.requests[0].body["model"] == "m-1"
        assert model.name == f"{server.base_url}#m-1"


async def test_a_model_of_ones_own_does_not_get_the_key_of_openai(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-1")
    async with LoopbackServer() as server:
        model = open_model(f"{server.base_url}#org/m-1:7b")
        await model.complete(ASKED)
        await model.close()
        assert "Authorization" not in server.requests[0].headers
        assert server.requests[0].body["model"] == "org/m-1:7b"


@pytest.mark.parametrize(
    ("name", "variable", "address", "path"),
    [
        ("azure:chat", "AZURE_OPENAI_ENDPOINT", "{url}/", "/openai/v1/chat/completions"),
        ("azure/chat", "AZURE_OPENAI_ENDPOINT", "{url}/openai/v1/", "/openai/v1/chat/completions"),
        ("ollama:chat", "OLLAMA_HOST", "{host}", "/v1/chat/completions"),
        ("ollama/chat", "OLLAMA_HOST", "{url}", "/v1/chat/completions"),
        ("vllm:chat", "VLLM_BASE_URL", "{url}/v1", "/v1/chat/completions"),
        ("vllm/chat", "VLLM_BASE_URL", "{url}", "/v1/chat/completions"),
    ],
)
async def test_the_environment_says_where_a_provider_is(
    name: str, variable: str, address: str, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with LoopbackServer() as server:
        monkeypatch.setenv(variable, address.format(url=server.url, host=server.url.removeprefix("http://")))
        model = open_model(name, api_key="k-1")
        await model.complete(ASKED)
        await model.close()
        assert server.requests[0].path == path
        assert server.requests[0].headers["Authorization"] == "Bearer k-1"
        assert server.requests[0].body["model"] == "chat"
        assert model.name == name.replace("/", ":")


@pytest.mark.parametrize("host", ["0.0.0.0:{port}", ":{port}", "[::]:{port}"])
async def test_what_ollama_listens_on_is_asked_on_this_machine(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with LoopbackServer() as server:
        monkeypatch.setenv("OLLAMA_HOST", host.format(port=server.url.rpartition(":")[2]))
        model = open_model("ollama:m")
        await model.complete(ASKED)
        await model.close()
        assert len(server.requests) == 1


@pytest.mark.parametrize(("provider", "variable"), [("openai", "OPENAI_API_KEY"), *KEYS.items()])
def test_a_missing_key_is_named(provider: str, variable: str) -> None:
    with pytest.raises(UsageError, match=rf"model '{provider}:m-1' needs a key: .* {variable}$"):
        open_model(f"{provider}:m-1")


def test_a_missing_address_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AZURE_OPENAI_ENDPOINT")
    with pytest.raises(UsageError, match="needs an address: set the environment variable AZURE_OPENAI_ENDPOINT"):
        open_model("azure:m", api_key="k")


@pytest.mark.parametrize("name", ["ollama:m", "vllm:m"])
def test_no_key_is_needed_where_models_are_ones_own(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VLLM_BASE_URL", "https://gpu.example.com/v1")
    assert open_model(name).name == name


def test_no_key_is_needed_on_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://localhost:11434/v1")
    assert open_model("openai:m-1").name == "http://localhost:11434/v1#m-1"


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_name_is_the_same_in_both_spellings_and_needs_no_key(provider: str) -> None:
    assert model_name(f"{provider}/org/m:1") == model_name(f"{provider}:org/m:1") == f"{provider}:org/m:1"


@pytest.mark.parametrize("name", ["openai/m-1", "vllm/org/m:7b", "http://localhost:1/v1/#m", "anthropic/claude"])
def test_an_opened_model_has_the_name_it_would_have(name: str) -> None:
    assert open_model(name, api_key="k").name == model_name(name)


def test_openai_itself_has_a_short_name() -> None:
    assert open_model("openai/m-1", api_key="sk-1").name == "openai:m-1"


@pytest.mark.parametrize(
    ("name", "variable", "address", "identity"),
    [
        ("openai/m", "OPENAI_BASE_URL", "", "openai:m"),
        ("openai:m", "OPENAI_BASE_URL", "https://proxy.example.com/v1/", "https://proxy.example.com/v1#m"),
        ("openrouter:org/m", "OPENAI_BASE_URL", "https://elsewhere/v1", "openrouter:org/m"),
        (
            "azure:chat",
            "AZURE_OPENAI_ENDPOINT",
            "https://Two.openai.azure.com/",
            "https://two.openai.azure.com/openai/v1#chat",
        ),
        ("ollama:m", "OLLAMA_HOST", "", "http://localhost:11434/v1#m"),
        ("ollama:m", "OLLAMA_HOST", "gpu-7", "http://gpu-7:11434/v1#m"),
        ("vllm:m", "VLLM_BASE_URL", "http://gpu:9000", "http://gpu:9000/v1#m"),
        ("http://GPU:9000/v1/#m", "VLLM_BASE_URL", "", "http://gpu:9000/v1#m"),
    ],
)
def test_the_identity_of_a_model_holds_its_address_unless_its_provider_fixed_that(
    name: str, variable: str, address: str, identity: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, address)
    assert model_identity(name) == identity_of(open_model(name, api_key="k")) == identity


def test_a_provider_asked_elsewhere_has_the_identity_of_that_place(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pydantic_ai")
    names = {"anthropic:m": "ANTHROPIC_BASE_URL", "groq:m": "GROQ_BASE_URL", "bedrock:m": "AWS_ENDPOINT_URL"}
    assert [model_identity(name) for name in names] == list(names)
    for name, variable in names.items():
        monkeypatch.setenv(variable, "https://gateway.example.com/x/")
        assert model_identity(name) == "https://gateway.example.com/x#m"
    assert identity_of(open_model("anthropic:m", api_key="k")) == "https://gateway.example.com/x#m"
    monkeypatch.setenv("GROQ_BASE_URL", "https://me:secret@gateway")
    with pytest.raises(UsageError, match="GROQ_BASE_URL: the address holds a user name or a password"):
        model_identity("groq:m")


@pytest.mark.parametrize(
    ("answered", "asked", "same"),
    [
        ("gpt-4.1-mini", "gpt-4.1-mini", True),
        ("gpt-4.1-mini-2025-04-14", "gpt-4.1-mini", True),
        ("gpt-4o-2024-08-06", "gpt-4o-latest", True),
        ("gpt-4-0613", "gpt-4", True),
        ("Qwen/Qwen3-8B", "qwen3-8b", True),
        ("gpt-4.1-mini-2025-04-14", "gpt-4.1", False),
        ("gpt-4.1", "gpt-4.1-mini", False),
        ("gpt-4o-2024-08-06", "gpt-4o-2024-05-13", False),
        ("gpt-4o", "gpt-4o-2024-05-13", False),
        ("llama3.1:8b", "llama3.1:70b", False),
    ],
)
def test_a_version_of_the_model_that_was_asked_is_that_model(answered: str, asked: str, same: bool) -> None:
    assert is_version_of(answered, asked) == same


def test_an_address_with_a_query_is_refused() -> None:
    with pytest.raises(UsageError, match=r"base_url: the address of an endpoint has no query") as caught:
        open_model("http://host/v1?key=s3cret#m")
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize("name", ["", "gpt-4o", "openai:", "openai/", ":m", "/m"])
def test_a_name_without_a_model_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match=r"a name has the form openai:NAME, .* or http://host/v1#NAME"):
        open_model(name)


def test_an_unknown_provider_is_refused_with_the_closest_known() -> None:
    with pytest.raises(UsageError, match="no provider 'antropic'; did you mean 'anthropic'"):
        open_model("antropic:m")
    with pytest.raises(UsageError, match="no provider 'ftp'; known: anthropic, azure, bedrock"):
        open_model("ftp://host#m")


def test_an_address_without_a_model_is_refused() -> None:
    with pytest.raises(UsageError, match="the model is missing; write http://localhost/v1#NAME"):
        open_model("http://localhost/v1")


def test_a_provider_of_the_extra_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pydantic_ai", None)
    for name in [name for name in sys.modules if name.startswith("vivavoce.models.providers.pydantic_ai")]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(MissingExtra, match=r"pip install 'vivavoce\[providers\]'"):
        open_model("anthropic:m", api_key="k")
