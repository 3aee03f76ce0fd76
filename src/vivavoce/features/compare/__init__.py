"""Comparisons of runs, sample by sample: what changed, how certain that is, and the samples that show it."""

from vivavoce.extensions import Command, Feature, Page

FEATURE = Feature(
    __name__,
    commands={
        "compare": Command("Compare two runs, sample by sample.", "command:command", panel="Results", before="export")
    },
    routes=("api:router", "page:router", "samples_page:router"),
    tabs=(Page("Compare", "/compare"),),
    run_page_links="choosing:links_of_run",
    comparison_link="choosing:comparison_link",
)
