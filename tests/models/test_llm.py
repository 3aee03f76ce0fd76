from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest
from pydantic import BaseModel

import vivavoce.models
from vivavoce.errors import UsageError
from vivavoce.messages import HumanMessage
from vivavoce.models import AnthropicLLM, BaseLLM, OpenAILLM, Request, VertexAILLM, as_model, get_default_model
from vivavoce.testing import LoopbackServer


class Verdict(BaseModel):
    score: float


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[LoopbackServer]:
    monkeypatch.delenv("VIVAVOCE_JUDGE", raising=False)
    with LoopbackServer() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-1")
        yield server


def test_it_generates_a_text_or_a_dict(server: LoopbackServer) -> None:
    model = OpenAILLM(model="m", temperature=0.5)
    assert model.generate("hi") == "You said: hi"
    server.answer = lambda body: {"score": 0.5}
    assert model.generate("hi", schema=Verdict) == {"score": 0.5}
    assert [request.body["temperature"] for request in server.requests] == [0.5, 0.5]
    assert model.get_model_name() == f"{server.base_url}#m"


async def test_it_generates_inside_a_running_loop_and_is_a_model_there(server: LoopbackServer) -> None:
    model = OpenAILLM(model="m")
    assert as_model(model) is model
    assert (await model.complete(Request([HumanMessage(content="hi")]))).text == "You said: hi"
    assert model.generate("ho") == "You said: ho"
    assert (await model.complete(Request([HumanMessage(content="ha")]))).text == "You said: ha"
    await model.close()


def test_other_providers_have_their_names() -> None:
    pytest.importorskip("pydantic_ai", reason="pip install 'vivavoce[providers]'")
    assert AnthropicLLM(model="claude-x", api_key="k").name == "anthropic:claude-x"
    assert VertexAILLM(model="gemini-x", api_key="k").name == "vertex:gemini-x"


async def test_a_model_of_ones_own_may_derive_from_the_base() -> None:
    class Mine(BaseLLM):
        def generate(self, prompt: str, schema: object = None) -> str:
            return prompt.upper()

    reply = await as_model(Mine()).complete(Request([HumanMessage(content="hi")]))
    assert (reply.text, Mine().get_model_name()) == ("HI", "Mine")
    with pytest.raises(TypeError, match="abstract"):
        BaseLLM()  # pyright: ignore[reportAbstractUsage]


def test_the_default_model_is_the_one_that_was_chosen(server: LoopbackServer, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match=r"set the environment variable VIVAVOCE_JUDGE .* such as openai:"):
        get_default_model()
    monkeypatch.setenv("VIVAVOCE_JUDGE", f"{server.base_url}#m")
    assert get_default_model().name == f"{server.base_url}#m"


def test_every_public_name_is_there_and_importing_them_costs_nothing() -> None:
    for name in vivavoce.models.__all__:
        assert getattr(vivavoce.models, name).__name__ == name
    assert dir(vivavoce.models) == sorted(vivavoce.models.__all__)
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        _ = vivavoce.models.Nothing
    code = "import sys, vivavoce.models; print([m for m in ('pydantic', 'aiohttp', 'pydantic_ai') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_without_a_name_it_is_the_model_of_its_provider_that_was_chosen(
    server: LoopbackServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VIVAVOCE_JUDGE", "ollama:llama3.1")
    with pytest.raises(
        UsageError, match=r"OpenAILLM needs the name of a model: OpenAILLM\('MODEL'\), or set VIVAVOCE_JU"
    ):
        OpenAILLM()
    monkeypatch.setenv("VIVAVOCE_TESTER", "openai:small")
    assert OpenAILLM().get_model_name() == f"{server.base_url}#small"
    monkeypatch.setenv("VIVAVOCE_JUDGE", "openai:large")
    assert OpenAILLM(temperature=0.5).get_model_name() == f"{server.base_url}#large"
    assert OpenAILLM("own").get_model_name() == f"{server.base_url}#own"
