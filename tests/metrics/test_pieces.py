from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from vivavoce.messages import HumanMessage
from vivavoce.metrics.config import Scope
from vivavoce.metrics.question import Piece, cut
from vivavoce.metrics.transcript import CHARACTERS_PER_TOKEN, Transcript

SIZES = st.lists(st.integers(1, 400), max_size=15)
TOKENS = st.integers(1, 200)


def written(sizes: list[int]) -> Transcript:
    transcript = Transcript()
    for size in sizes:
        transcript.add_turn([HumanMessage(content="x" * size)])
    return transcript


def fits(transcript: Transcript, piece: Piece, tokens: int) -> bool:
    taken = sum(transcript.size(turn) for turn in range(piece.first, piece.last))
    return taken <= tokens * CHARACTERS_PER_TOKEN or piece.last - piece.first == 1


def test_a_conversation_that_fits_is_one_piece() -> None:
    assert cut(written([5, 5, 5]), "conversation", 5, 1000, 2) == [Piece(0, 3, 3)]


def test_one_without_turns_is_one_piece_too() -> None:
    assert cut(written([]), "conversation", 5, 1000, 2) == [Piece(0, 0, 0)]
    assert cut(written([]), "turn", 5, 1000, 2) == []


@pytest.mark.parametrize(
    ("scope", "pieces"),
    [
        ("turn", [Piece(0, 1, 1), Piece(0, 2, 1), Piece(0, 3, 1)]),
        ("window", [Piece(0, 1, 1), Piece(0, 2, 2), Piece(1, 3, 2)]),
    ],
)
def test_turns_come_with_their_past_and_windows_by_themselves(scope: Scope, pieces: list[Piece]) -> None:
    assert cut(written([5, 5, 5]), scope, 2, 1000, 0) == pieces
    assert cut(written([5, 5, 5]), scope, 2, 1000, 0, since=2) == pieces[2:]


@given(SIZES, TOKENS, st.integers(0, 4))
@example([1, 100, 370], 100, 2)
def test_every_turn_of_a_long_conversation_is_judged_once_and_in_order(
    sizes: list[int], tokens: int, overlap: int
) -> None:
    transcript = written(sizes)
    pieces = cut(transcript, "conversation", 5, tokens, overlap)
    judged = [turn for piece in pieces for turn in range(piece.last - piece.judged, piece.last)]
    assert judged == list(range(len(sizes)))
    assert not sizes or all(piece.judged > 0 for piece in pieces)
    for before, piece in pairwise(pieces):
        assert before.last - overlap <= piece.first <= before.last
    assert all(fits(transcript, piece, tokens) for piece in pieces)


@given(SIZES, TOKENS, st.integers(1, 5), st.sampled_from(["turn", "window"]))
def test_each_turn_ends_one_piece_that_fits(sizes: list[int], tokens: int, window: int, scope: Scope) -> None:
    transcript = written(sizes)
    pieces = cut(transcript, scope, window, tokens, 2)
    assert [piece.last for piece in pieces] == list(range(1, len(sizes) + 1))
    assert all(fits(transcript, piece, tokens) for piece in pieces)
    for piece in pieces:
        assert piece.judged == (1 if scope == "turn" else piece.last - piece.first)
        assert scope == "turn" or piece.judged <= window
