"""Groups of conversations: how those of a tag, a target, or a language fare against the others."""

from vivavoce.extensions import Command, Feature

FEATURE = Feature(
    __name__,
    commands={"groups": Command("Compare groups in a run: tags, targets, languages.", "command:command", of="compare")},
    routes=("api:router",),
    run_list_parameters=("group",),
    run_list_parts="page:groups_of_list",
    tag_finding="report:tag_finding",
)
