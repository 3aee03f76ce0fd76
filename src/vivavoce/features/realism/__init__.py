"""Realism: whether the user's side of a run's conversations is like that of real ones."""

from vivavoce.extensions import Command, Feature

FEATURE = Feature(
    __name__,
    commands={"realism": Command("Compare simulated users with real ones.", "command:command", of="compare")},
)
