"""Names of conversations: `SAMPLE` or `SAMPLE#2` in a run, as people write them in every place."""

from __future__ import annotations

from vivavoce.records.counting import split_name
from vivavoce.store.store import Store


def named_conversation(store: Store, run_id: str, name: str) -> tuple[str, int | None]:
    """Return the sample and the trial, as the store keeps it, that a name means; no trial where it names none.

    A sample whose own id ends like the number of a trial, such as `issue#2`, is found by its id.

    Raises:
        UsageError: the name says trial 0, and no sample is called so.
    """
    if "#" not in name or any(True for _ in store.attempts(run_id, sample_id=name)):
        return name, None
    return split_name(name)
