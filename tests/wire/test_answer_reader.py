from __future__ import annotations

from itertools import pairwise

from hypothesis import example, given
from hypothesis import strategies as st

from vivavoce.wire.answer_reader import AnswerReader
from vivavoce.wire.exchange import Broken

CHUNKED = (
    b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nSet-Cookie: a=b\r\n"
    b"Set-Cookie: c=d\r\n\r\n3\r\nhel\r\n0002;x\r\nlo\r\n0\r\n\r\n"
)


def read(data: bytes, cuts: list[int]) -> AnswerReader:
    reader = AnswerReader(100)
    edges = [0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]
    for start, end in pairwise(edges):
        if start < end:
            reader.feed(data[start:end])
    return reader


@given(st.lists(st.integers(min_value=0), max_size=8))
def test_it_does_not_matter_where_the_bytes_are_cut(cuts: list[int]) -> None:
    reader = read(CHUNKED, cuts)
    assert (reader.is_whole, reader.can_go_on, reader.response.body) == (True, True, b"hello")
    assert reader.response.all_of("Set-Cookie") == ["a=b", "c=d"]


@given(st.binary() | st.binary().map(lambda some: b"HTTP/1.1 200 OK\r\n" + some), st.lists(st.integers(min_value=0)))
@example(b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n", [])
@example(b"HTTP/1.1 200 OK\r\nContent-Length: \xb2\r\n\r\n", [])
@example(b"HTTP/1.1 200 OK\r\nContent-Encoding: deflate\r\n\r\n\x00", [])
def test_any_bytes_are_an_answer_or_broken(data: bytes, cuts: list[int]) -> None:
    try:
        reader = read(data, cuts)
        if not reader.is_whole:
            reader.end()
    except Broken:
        return
    assert reader.is_whole
    assert len(reader.response.body) <= 101 or reader.response.cut
