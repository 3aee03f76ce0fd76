from __future__ import annotations

from base64 import b64encode

import pytest

from vivavoce.messages import AudioPart, ContentPart, ImagePart, InputAudio, TextPart
from vivavoce.messages import ImageURL as At
from vivavoce.report.html.content.media import Media, decoded, media_of

PNG = b"\x89PNG\r\n\x1a\n" + bytes(40)


def image(claimed: str, data: bytes) -> Media:
    return found(ImagePart(image_url=At(url=f"data:{claimed};base64,{b64encode(data).decode()}")))


def found(part: ContentPart) -> Media:
    media = media_of(part)
    assert media is not None
    return media


@pytest.mark.parametrize(
    ("claimed", "data", "found"),
    [
        ("image/png", PNG, "image/png"),
        ("image/jpeg", b"\xff\xd8\xff\xe0" + bytes(9), "image/jpeg"),
        ("image/jpg", b"\xff\xd8\xff\xe0" + bytes(9), "image/jpeg"),
        ("image/gif", b"GIF89a" + bytes(9), "image/gif"),
        ("image/webp", b"RIFF\0\0\0\0WEBP" + bytes(9), "image/webp"),
    ],
)
def test_a_raster_image_is_shown_by_its_first_bytes(claimed: str, data: bytes, found: str) -> None:
    one = image(claimed, data)
    assert (one.shown, one.type) == (True, found)
    assert "which it is not" not in one.words
    assert decoded(one) == data


@pytest.mark.parametrize(
    ("format", "data"),
    [("wav", b"RIFF\0\0\0\0WAVE"), ("mp3", b"ID3\x04"), ("mp3", b"\xff\xfb\x90"), ("ogg", b"OggS\0")],
)
def test_sound_is_shown_by_its_first_bytes(format: str, data: bytes) -> None:  # noqa: A002
    one = found(AudioPart(input_audio=InputAudio(data=b64encode(data + bytes(20)).decode(), format=format)))
    assert one.shown


def test_an_image_that_lies_about_its_type_is_said_so() -> None:
    assert image("image/jpeg", PNG).words == "image, PNG, 1 kB; it says image/jpeg, which it is not"


@pytest.mark.parametrize(
    ("claimed", "data"),
    [
        ("image/svg+xml", b"<svg onload='xss()'/>"),
        ("image/png", b"<svg onload='xss()'/>"),
        ("image/png", b"<script>xss()</script>"),
        ("text/html", b"<script>xss()</script>"),
        ("image/png", b"RIFF\0\0\0\0WAVE" + bytes(20)),  # sound is no image
        ("image/png", b""),
    ],
)
def test_what_is_no_raster_image_is_never_one(claimed: str, data: bytes) -> None:
    one = image(claimed, data)
    assert not one.shown
    assert f"not shown: it says {claimed}" in one.words


@pytest.mark.parametrize("url", ["data:image/svg+xml,<svg/>", "data:image/png;base64,@@@", "data:,x", "data:"])
def test_data_that_is_no_base64_is_never_an_image(url: str) -> None:
    assert not found(ImagePart(image_url=At(url=url))).shown


def test_an_image_elsewhere_is_named_and_not_loaded() -> None:
    one = found(ImagePart(image_url=At(url="https://example.org/a.png")))
    assert (one.shown, one.words) == (False, "image at https://example.org/a.png, not loaded")


def test_words_are_no_media() -> None:
    assert media_of(TextPart(text="x")) is None
