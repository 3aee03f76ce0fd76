"""Watching production: traces come in, become conversations, and are judged as runs of a store."""

from vivavoce.extensions import Command, Feature, Page

FEATURE = Feature(
    __name__,
    commands={
        "watch-traces": Command(
            "Judge conversations of production as their traces come in.", "command:command", after="merge"
        )
    },
    routes=("api:router", "page:router"),
    tabs=(Page("Watch", "/watch"),),
)
