"""Pictures and sound in messages: what their first bytes say they are, which is all that is believed of them."""

from __future__ import annotations

import binascii
import re
from base64 import b64decode
from dataclasses import dataclass

from vivavoce.messages import AudioPart, ContentPart, ImagePart
from vivavoce.report.text import one_line

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
    def shown(self) -> bool:
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
        if not self.shown:
            why = "which its bytes are not" if self.claimed in _NAMES else f"and only {_KINDS[self.kind]} are shown"
            return f"{self.kind}, {self._much}, not shown: {says}, {why}"
        known = f"{self.kind}, {_NAMES[self.type]}, {self._much}"
        return known if self.type == _SAME.get(self.claimed, self.claimed) else f"{known}; {says}, which it is not"

    @property
    def _much(self) -> str:
        return f"{max(self.size // 1000, 1):,} kB"


def media_of(part: ContentPart) -> Media | None:
    """Return the picture or the sound of a part of a message, None for any other part."""
    if isinstance(part, ImagePart):
        return _image(part.image_url.url)
    if isinstance(part, AudioPart):
        data = part.input_audio.data
        found = _DATA.match(data)
        data = data[found.end() :] if found else data
        return Media("audio", f"audio/{part.input_audio.format.lower()}", _type(data), data)
    return None


def _image(url: str) -> Media:
    found = _DATA.match(url)
    if found is None or not found[2]:
        if url[:5].lower() == "data:":
            return Media("image", (found[1] or "").lower() if found else "", "", "")
        return Media("image", "", "", "", remote=url)
    data = url[found.end() :]
    return Media("image", (found[1] or "").lower(), _type(data), data)


def decoded(media: Media) -> bytes | None:
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
