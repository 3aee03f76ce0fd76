"""Clusters of failures: what failed in a run, grouped by what the failures have in common."""

from vivavoce.extensions import Command, Feature

FEATURE = Feature(
    __name__,
    commands={
        "clusters": Command("Group the failures of a run by what they have in common.", "command:command", of="compare")
    },
    routes=("api:router", "page:router"),
    run_page_links="page:links_of_run",
)
