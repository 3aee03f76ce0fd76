"""The content of a message on a page: its text with evidence in it, the reasoning of a model, pictures, and sound."""

from __future__ import annotations

import binascii
import re
from base64 import b64decode
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, cast

from markupsafe import Markup

from vivavoce.messages import AIMessage, AnyMessage, AudioPart, ContentPart, ImagePart
from vivavoce.report.html.content.json_tree import json_html, json_tree
from vivavoce.report.html.content.markdown import has_markup, markdown
from vivavoce.report.html.content.writing import plain, tree
from vivavoce.report.html.evidence import Mark
from vivavoce.report.text import one_line

Sort = Literal["speech", "data"]
"""What people and models say to each other, or what goes to tools and comes back."""
Look = Literal["plain", "rich", "json"]
"""How a text is shown: as it is, with its markup, or as a tree."""

MAX_CHARS: Mapping[Sort, int] = {"speech": 50_000, "data": 20_000}
"""Characters of a text that a page shows; the rest is one link away."""
_MAX_CACHED_CHARS = 8_000
"""Characters of a text whose HTML is kept for the next reader."""


@dataclass(frozen=True, slots=True)
class RenderedText:
    """A text on a page.

    `source` is what was written, where the page shows it otherwise; `left` are the characters that are not shown, and
    `rest` is the address of all of it.
    """

    html: Markup
    look: Look
    source: Markup | None = None
    left: int = 0
    rest: str | None = None
    cited: bool = False
    kind: Literal["written"] = "written"


def render_text(
    text: str, sort: Sort, marks: Sequence[Mark], *, raw: bool = False, rest: str | None = None, more: int = 0
) -> RenderedText:
    """Return a text as a page shows it, `raw` means as it was written; marks lie within what is shown.

    `more` are the characters after this text that are not shown either.
    """
    beginning, left = text[: MAX_CHARS[sort]], max(len(text) - MAX_CHARS[sort], 0) + more
    html, look = (None, "plain") if raw else _choose_look(text, sort, marks)
    if html is None:
        return RenderedText(plain(beginning, marks), "plain", None, left, rest, bool(marks))
    source = plain(beginning, marks, is_target=False)
    return RenderedText(html, look, source, left, rest, bool(marks))


def _choose_look(text: str, sort: Sort, marks: Sequence[Mark]) -> tuple[Markup | None, Look]:
    """Return a text with its markup or as a tree, None if it has neither."""
    if not (text.lstrip()[:1] in ("{", "[") or (sort == "speech" and has_markup(text[: MAX_CHARS[sort]]))):
        return None, "plain"
    if len(text) > _MAX_CACHED_CHARS:
        return _html(text, sort, marks)
    return _cached_html(text, sort, tuple(marks))


@lru_cache(maxsize=1024)
def _cached_html(text: str, sort: Sort, marks: tuple[Mark, ...]) -> tuple[Markup | None, Look]:
    return _html(text, sort, marks)


def _html(text: str, sort: Sort, marks: Sequence[Mark]) -> tuple[Markup | None, Look]:
    container = json_tree(text, MAX_CHARS[sort])
    if container is not None:
        return json_html(container, marks), "json"
    if sort == "data" or not has_markup(text[: MAX_CHARS[sort]]):
        return None, "plain"
    return tree(markdown(text[: MAX_CHARS[sort]]), marks), "rich"


_KEYS = ("reasoning_content", "reasoning", "thinking", "reasoning_details")
"""Keys next to the content: DeepSeek, vLLM and Letta; OpenRouter; Ollama."""
_TEXTS = ("thinking", "text", "reasoning", "reasoning_text", "summary")
_BLOCKS = ("thinking", "reasoning")
_BEFORE = re.compile(r"\s*<(think|thinking)>(.*?)</\1>\s*", re.DOTALL)
"""Reasoning that open models write before their answer."""
_MAX_DEPTH = 6


def reasoning(message: AnyMessage) -> str:
    """Return the reasoning that stands next to the content of a message, empty if there is none."""
    if not isinstance(message, AIMessage):
        return ""
    beside = message.model_extra or {}
    reasoning_text = next((text for key in _KEYS if (text := "\n\n".join(_texts(beside.get(key), _MAX_DEPTH)))), "")
    return reasoning_text or "\n\n".join(_kept_blocks(message.metadata, _MAX_DEPTH))


def without_reasoning(text: str) -> tuple[str, str]:
    """Return the reasoning at the beginning of a text, empty if there is none, and the rest of the text."""
    match = _BEFORE.match(text) if text.lstrip()[:6] == "<think" else None
    return ("", text) if match is None else (match[2].strip(), text[match.end() :])


def _texts(value: object, depth: int) -> Iterator[str]:
    if isinstance(value, str):
        if value.strip():
            yield value
    elif isinstance(value, Mapping) and depth:
        fields = cast("Mapping[str, Any]", value)
        yield from next((texts for key in _TEXTS if (texts := list(_texts(fields.get(key), depth - 1)))), ())
    elif isinstance(value, Sequence) and depth:
        for child in cast("Sequence[object]", value):
            yield from _texts(child, depth - 1)


def _kept_blocks(value: object, depth: int) -> Iterator[str]:
    """Yield the texts of blocks of reasoning in what an exchange format keeps aside of a message."""
    if isinstance(value, Mapping) and depth:
        fields = cast("Mapping[str, object]", value)
        if fields.get("type") in _BLOCKS:
            yield from _texts(fields, _MAX_DEPTH)
            return
        for child in fields.values():
            yield from _kept_blocks(child, depth - 1)
    elif isinstance(value, list) and depth:
        for child in cast("list[object]", value):
            yield from _kept_blocks(child, depth - 1)


_DATA = re.compile(r"data:([\w.+-]+/[\w.+-]+)?(?:;[\w=.+-]+)*?(;base64)?,", re.IGNORECASE)
_PEEK = 64
"""Characters of base64 that tell the type."""
_NAMES = {
    "image/png": "PNG",
    "image/jpeg": "JPEG",
    "image/gif": "GIF",
    "image/webp": "WebP",
    "audio/wav": "WAV",
    "audio/mpeg": "MP3",
    "audio/ogg": "Ogg",
}
_KINDS = {"image": "PNG, JPEG, GIF and WebP", "audio": "WAV, MP3 and Ogg"}
_SAME = {"image/jpg": "image/jpeg", "audio/mp3": "audio/mpeg", "audio/x-wav": "audio/wav", "audio/wave": "audio/wav"}


@dataclass(frozen=True, slots=True)
class Media:
    """A picture or a sound that is stored in a message.

    `type` is what its first bytes say, empty where they say nothing that is shown; `claimed` is what the message says,
    and `remote` the address of one that is not stored. `data` is base64.
    """

    kind: str
    claimed: str
    type: str
    data: str
    remote: str = ""

    @property
    def is_shown(self) -> bool:
        """Whether it can be shown: its bytes are of a known type of its kind."""
        return self.type.startswith(f"{self.kind}/")

    @property
    def size(self) -> int:
        """Its bytes."""
        return len(self.data) * 3 // 4

    @property
    def words(self) -> str:
        """What it is, in words; a type that is not the claimed one is said."""
        says = f"it says {one_line(self.claimed, 60) or 'no type'}"
        if self.remote:
            return f"{self.kind} at {one_line(self.remote, 300)}, not loaded"
        if not self.is_shown:
            why = "but its bytes differ" if self.claimed in _NAMES else f"and only {_KINDS[self.kind]} are shown"
            return f"{self.kind}, {self._much}, not shown: {says}, {why}"
        known = f"{self.kind}, {_NAMES[self.type]}, {self._much}"
        return known if self.type == _SAME.get(self.claimed, self.claimed) else f"{known}; {says}, which is wrong"

    @property
    def _much(self) -> str:
        return f"{max(self.size // 1000, 1):,} kB"


def media_of(part: ContentPart) -> Media | None:
    """Return the picture or the sound of a part of a message, None for any other part."""
    if isinstance(part, ImagePart):
        return _image(part.image_url.url)
    if isinstance(part, AudioPart):
        data = part.input_audio.data
        match = _DATA.match(data)
        data = data[match.end() :] if match else data
        return Media("audio", f"audio/{part.input_audio.format.lower()}", _type(data), data)
    return None


def _image(url: str) -> Media:
    match = _DATA.match(url)
    if match is None or not match[2]:
        if url[:5].lower() == "data:":
            return Media("image", (match[1] or "").lower() if match else "", "", "")
        return Media("image", "", "", "", remote=url)
    data = url[match.end() :]
    return Media("image", (match[1] or "").lower(), _type(data), data)


def decode(media: Media) -> bytes | None:
    """Return the bytes, None if they are not base64."""
    try:
        return b64decode(media.data, validate=False)
    except (binascii.Error, ValueError):
        return None


def _type(data: str) -> str:
    """Return the type that the first bytes say, empty for an unknown one.

    Source: WHATWG MIME Sniffing Standard, "Matching an image type pattern" and "Matching an audio or video type
    pattern".
    """
    try:
        head = b64decode(data[:_PEEK], validate=True)
    except (binascii.Error, ValueError):
        return ""
    if head.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if head.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if head.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    if head.startswith(b"RIFF"):
        return {b"WEBP": "image/webp", b"WAVE": "audio/wav"}.get(head[8:12], "")
    if head.startswith(b"OggS\x00"):
        return "audio/ogg"
    return "audio/mpeg" if head.startswith((b"ID3", b"\xff\xfb", b"\xff\xf3", b"\xff\xf2")) else ""
