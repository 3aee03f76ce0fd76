"""Realism: whether the user's side of a run's conversations is like that of real ones."""

from vivavoce.extensions import Command, Feature

FEATURE = Feature(
    __name__,
    commands={
        "realism": Command("Say whether simulated users write as real ones do.", "command:command", of="compare")
    },
)
