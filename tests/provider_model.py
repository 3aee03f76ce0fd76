"""A scripted model that stands for a model of a provider: its replies are cached under its name."""

from __future__ import annotations

from vivavoce.testing import ScriptedModel


class ProviderModel(ScriptedModel):
    """Answers as scripted, and lets its replies be cached."""

    anonymous = False
