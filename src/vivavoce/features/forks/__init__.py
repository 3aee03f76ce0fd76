"""Forks: continue a stored conversation from one of its turns, and find the turn at which it went wrong."""

from vivavoce.extensions import Command, Feature

FEATURE = Feature(
    __name__,
    commands={
        "fork": Command(
            "Continue a conversation from one of its turns, to find what broke.", "command:command", of="runs"
        )
    },
    routes=("api:router", "page:router"),
    describe_run="records:describe_fork",
    resume_run="records:resume_fork",
    run_report="records:report_of_run",
    conversation_report="records:fork_lines",
    run_page_links="page:links_of_run",
    conversation_page_sections="page:sections_of_conversation",
)
