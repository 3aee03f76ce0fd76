"""The hooks of the support desk. Every command of `viva` imports this module, so it imports nothing else of ours."""

from __future__ import annotations

from vivavoce.extensions import Command, Page, PageSection, hookimpl


@hookimpl
def register_formats():
    return {"tickets": "support_desk.parts:TICKETS"}


@hookimpl
def register_targets():
    return {"canned": "support_desk.parts:canned"}


@hookimpl
def register_metrics():
    return {"politeness": "support_desk.parts:Politeness"}


@hookimpl
def register_exporters():
    return {"tsv": "support_desk.parts:TSV"}


@hookimpl
def register_commands():
    return {
        "politeness": Command("Print how polite the replies of a run are.", "support_desk.parts:command", of="show")
    }


@hookimpl
def run_page_sections(store, run, grading):
    from support_desk.parts import mean_politeness  # imported only when a page is shown

    mean = mean_politeness(store, run.id, grading)
    if mean is None:
        return []
    return [PageSection("Politeness", (Page("The style guide", "https://desk.example/style"),), (f"Mean: {mean:.2f}",))]
