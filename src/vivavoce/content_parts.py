"""The content of a message: a text, or parts that are texts, images, sounds, files, and refusals.

Source of the shape: the content parts of OpenAI's chat completions reference.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field


class Wire(BaseModel):
    """A shape of the wire: immutable, keeps unknown keys, and dumps only what was given (`to_dict`)."""

    model_config = ConfigDict(frozen=True, extra="allow", ser_json_inf_nan="constants")

    def to_dict(self) -> dict[str, Any]:
        """Return what was given, as plain JSON types."""
        return self.model_dump(mode="json", exclude_unset=True)


class Typed(Wire):
    """A part that says its own type."""

    def model_post_init(self, context: Any, /) -> None:
        """Count the type as given, so that it is never left out of a dump."""
        self.__pydantic_fields_set__.add("type")


class ImageURL(Wire):
    """Where an image is: a web address or a `data:` URL."""

    url: str
    detail: str | None = None


class InputAudio(Wire):
    """Sound, base64-encoded."""

    data: str
    format: str


class FileReference(Wire):
    """A file by id, or base64-encoded in place."""

    file_id: str | None = None
    file_data: str | None = None
    filename: str | None = None


class TextPart(Typed):
    """Text within a message of several parts."""

    type: Literal["text"] = "text"
    text: str


class ImagePart(Typed):
    """An image within a message."""

    type: Literal["image_url"] = "image_url"
    image_url: ImageURL


class AudioPart(Typed):
    """Sound within a message."""

    type: Literal["input_audio"] = "input_audio"
    input_audio: InputAudio


class FilePart(Typed):
    """A file within a message."""

    type: Literal["file"] = "file"
    file: FileReference


class RefusalPart(Typed):
    """The words with which a model declined."""

    type: Literal["refusal"] = "refusal"
    refusal: str


ContentPart = Annotated[TextPart | ImagePart | AudioPart | FilePart | RefusalPart, Field(discriminator="type")]
Content = str | list[ContentPart]
