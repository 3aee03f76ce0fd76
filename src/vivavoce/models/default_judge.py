"""`DefaultJudge`: the model that VIVAVOCE_JUDGE names, for metrics without a model of their own."""

from __future__ import annotations

from vivavoce.models.model import Model
from vivavoce.models.names import model_identity, open_model
from vivavoce.settings import settings


class DefaultJudge:
    """The model that VIVAVOCE_JUDGE names when it is needed; an opened model is used until it is closed."""

    def __init__(self) -> None:
        self._opened: dict[str, Model] = {}

    @property
    def identity(self) -> str | None:
        """The identity of the model that is named now, None where none is; no key is needed to know it.

        Raises:
            UsageError: the name has no known form, or an address is missing.
        """
        name = settings().judge
        return None if name is None else model_identity(name)

    @property
    def model(self) -> Model | None:
        """The model that is named now, None where none is.

        Raises:
            UsageError: it cannot be opened, as where its key is missing.
        """
        name, identity = settings().judge, self.identity
        if name is None or identity is None:
            return None
        if identity not in self._opened:
            self._opened[identity] = open_model(name)
        return self._opened[identity]

    async def close(self) -> None:
        """Close the opened models; a later question opens the model that is named then."""
        opened, self._opened = self._opened, {}
        for model in opened.values():
            await model.close()
