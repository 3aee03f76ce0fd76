from __future__ import annotations

import pytest

from vivavoce.errors import UsageError
from vivavoce.messages import HumanMessage
from vivavoce.models.model import Request
from vivavoce.models.names import DefaultJudge
from vivavoce.testing import LoopbackServer


async def test_it_is_whatever_the_environment_names_when_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    default = DefaultJudge()
    assert (default.model, default.identity) == (None, None)
    async with LoopbackServer() as server:
        for name in ("one", "two"):
            monkeypatch.setenv("VIVAVOCE_JUDGE", f"{server.base_url}#{name}")
            model = default.model
            assert model is not None
            assert model is default.model
            assert model.name == default.identity == f"{server.base_url}#{name}"
            await model.complete(Request([HumanMessage(content="hi")]))
        monkeypatch.delenv("VIVAVOCE_JUDGE")
        assert default.model is None
        await default.close()
        assert [request.body["model"] for request in server.requests] == ["one", "two"]


def test_one_that_cannot_be_opened_is_named_and_has_an_identity(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VIVAVOCE_JUDGE", "openai/m")
    default = DefaultJudge()
    assert default.identity == "openai:m"
    with pytest.raises(UsageError, match="model 'openai/m' needs a key"):
        assert default.model
    monkeypatch.setenv("OPENAI_API_KEY", "sk-1")
    assert default.model is not None
