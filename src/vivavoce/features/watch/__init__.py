"""Watching production: traces come in, become conversations, and are judged as runs of a store."""

from vivavoce.extensions import Command, Feature, Page

FEATURE = Feature(
    __name__,
    commands={
        "watch": Command(
            "Judge production conversations as traces come in.",
            "command:command",
            panel="Operate",
            former_name="watch-traces",
        )
    },
    routes=("api:router", "page:router"),
    tabs=(Page("Watch", "/watch"),),
)
