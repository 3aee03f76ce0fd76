"""Labels: people's verdicts on conversations, queues, decisions, and how far people and judges agree."""

from vivavoce.extensions import Command, Feature, Page

FEATURE = Feature(
    __name__,
    commands={
        "labels": Command(
            "Export human labels, or compare a judge with them.", "command:command", panel="Trust", before="metrics"
        )
    },
    routes=(
        "api:router",
        "decisions_api:router",
        "queues_api:router",
        "decisions_page:router",
        "page:router",
        "queues_page:router",  # /label/{queue} would take the paths of the others
    ),
    tabs=(Page("Label", "/label"),),
    run_page_lines="page:lines_of_run",
    ways_to_label="page:ways_to_label",
    conversation_page_parts="page:parts_of_conversation",
)
