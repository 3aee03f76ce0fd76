from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from vivavoce.errors import BudgetExhausted, Fault, ModelFault, UsageError
from vivavoce.models.embedder import TEXTS_PER_REQUEST, OpenAIEmbedder, as_embedder
from vivavoce.pacing.limits import Budget
from vivavoce.testing import LoopbackServer, misbehaviour
from vivavoce.testing.loopback import Answer


def lengths(body: dict[str, Any]) -> dict[str, Any]:
    """Answer with the length of each text as its vector, in the wrong order as endpoints may."""
    rows = [{"index": i, "embedding": [float(len(text)), 1.0]} for i, text in enumerate(body["input"])]
    return {"object": "list", "data": rows[::-1], "usage": {"prompt_tokens": 7, "total_tokens": 7}}


@pytest.fixture
async def server() -> AsyncIterator[LoopbackServer]:
    async with LoopbackServer(lengths) as server:
        yield server


@pytest.fixture
async def embedder(server: LoopbackServer) -> AsyncIterator[OpenAIEmbedder]:
    embedder = OpenAIEmbedder("e-1", base_url=server.base_url, api_key="sk-long-enough-to-hide")
    yield embedder
    await embedder.close()


async def test_each_text_gets_its_own_vector(server: LoopbackServer, embedder: OpenAIEmbedder) -> None:
    assert await embedder.embed(["one", "three"]) == [[3, 1], [5, 1]]
    (request,) = server.requests
    assert (request.path, request.headers["Authorization"]) == ("/v1/embeddings", "Bearer sk-long-enough-to-hide")
    assert request.body == {"model": "e-1", "input": ["one", "three"], "encoding_format": "float"}
    assert embedder.name == f"{server.base_url}#e-1"


async def test_many_texts_are_asked_for_in_parts(server: LoopbackServer, embedder: OpenAIEmbedder) -> None:
    texts = ["x" * (i % 9) for i in range(2 * TEXTS_PER_REQUEST + 1)]
    assert [vector[0] for vector in await embedder.embed(texts)] == [len(text) for text in texts]
    assert [len(request.body["input"]) for request in server.requests] == [TEXTS_PER_REQUEST, TEXTS_PER_REQUEST, 1]
    assert await embedder.embed([]) == []


async def test_half_characters_are_replaced(server: LoopbackServer, embedder: OpenAIEmbedder) -> None:
    await embedder.embed(["a\ud800b"])
    assert server.requests[0].body["input"] == ["a?b"]


async def test_a_failure_that_may_pass_is_tried_again(server: LoopbackServer, embedder: OpenAIEmbedder) -> None:
    answers: list[Callable[[dict[str, Any]], Answer]] = [lambda _: misbehaviour.status(500), lengths]
    server.answer = lambda body: answers.pop(0)(body)
    assert await embedder.embed(["one"]) == [[3, 1]]


UNFIT: list[Answer] = [
    {},
    {"data": []},
    {"data": [{"index": 0, "embedding": []}]},
    {"data": [{"index": 1, "embedding": [1.0]}]},
    {"data": [{"index": 0, "embedding": [1.0]}, {"index": 0, "embedding": [1.0]}]},
    {"data": [{"index": 0, "embedding": ["one"]}]},
    {"data": [{"index": 0, "embedding": [float("nan")]}]},
    "no JSON",
]


@pytest.mark.parametrize("answer", UNFIT)
async def test_an_answer_that_does_not_fit_is_a_fault(
    server: LoopbackServer, embedder: OpenAIEmbedder, answer: Answer
) -> None:
    server.answer = lambda _: answer
    with pytest.raises(ModelFault) as caught:
        await embedder.embed(["one"])
    assert caught.value.kind == "format"


async def test_vectors_of_different_lengths_do_not_compare(server: LoopbackServer, embedder: OpenAIEmbedder) -> None:
    server.answer = lambda body: {"data": [{"index": i, "embedding": [1.0] * (i + 1)} for i in range(2)]}
    with pytest.raises(ModelFault, match="different lengths"):
        await embedder.embed(["one", "two"])


async def test_a_refused_key_is_told_and_not_shown(server: LoopbackServer, embedder: OpenAIEmbedder) -> None:
    server.answer = lambda _: misbehaviour.status(401)
    with pytest.raises(Fault) as caught:
        await embedder.embed(["one"])
    assert caught.value.status == 401
    assert "sk-long" not in f"{caught.value}{caught.value.evidence}"


async def test_calls_are_limited_and_a_cost_that_is_unknown_cannot_be(server: LoopbackServer) -> None:
    embedder = OpenAIEmbedder("e-1", base_url=server.base_url, budget=Budget(max_calls=1))
    await embedder.embed(["one"])
    with pytest.raises(BudgetExhausted):
        await embedder.embed(["two"])
    await embedder.close()
    with pytest.raises(UsageError, match=r"price of .* is unknown"):
        OpenAIEmbedder("e-1", base_url=server.base_url, budget=Budget(max_cost=1))


async def test_an_embedder_is_opened_by_name(server: LoopbackServer, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = as_embedder(f"{server.base_url}#e-1")
    assert await opened.embed(["one"]) == [[3, 1]]
    assert "Authorization" not in server.requests[0].headers
    await opened.close()
    assert as_embedder(opened) is opened
    monkeypatch.setenv("OPENAI_API_KEY", "sk-1")
    assert as_embedder("openai:text-embedding-3-small").name == "openai:text-embedding-3-small"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("openai:e", "set the environment variable OPENAI_API_KEY"),
        ("opnai:e", "did you mean 'openai'"),
        ("words", "a name is local, PROVIDER:NAME"),
        ("http://localhost:1/v1", "the model is missing"),
    ],
)
def test_a_name_that_opens_nothing_says_what_is_missing(name: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        as_embedder(name)
