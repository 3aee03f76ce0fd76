from __future__ import annotations

import pytest

from vivavoce.errors import UsageError
from vivavoce.messages import HumanMessage
from vivavoce.models.model import Request
from vivavoce.models.names import open_model
from vivavoce.testing import LoopbackServer

ASKED = Request([HumanMessage(content="hi")])


@pytest.fixture(autouse=True)
def no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)


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


def test_a_missing_key_is_named() -> None:
    with pytest.raises(UsageError, match=r"model 'openai:m-1' needs a key: .* OPENAI_API_KEY"):
        open_model("openai:m-1")


def test_no_key_is_needed_on_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://localhost:11434/v1")
    assert open_model("openai:m-1").name == "http://localhost:11434/v1#m-1"


def test_openai_itself_has_a_short_name() -> None:
    assert open_model("openai/m-1", api_key="sk-1").name == "openai:m-1"


@pytest.mark.parametrize("name", ["", "gpt-4o", "openai:", "cohere:x", "ftp://host#m"])
def test_an_unknown_form_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match="a name has the form openai:NAME or http://host/v1#NAME"):
        open_model(name)


def test_an_address_without_a_model_is_refused() -> None:
    with pytest.raises(UsageError, match="the model is missing; write http://localhost/v1#NAME"):
        open_model("http://localhost/v1")
