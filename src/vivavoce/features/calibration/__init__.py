"""Calibrations: how far a judge can be believed, by the labels of people; and cascades of two judges."""

from vivavoce.extensions import Command, Feature

FEATURE = Feature(
    __name__,
    commands={
        "calibrate": Command(
            "Say how far to believe a judge, and correct its rates.", "command:calibrate", panel="Trust"
        ),
        "cascade": Command(
            "Choose where a cheap judge decides, and what that saves.", "command:cascade", of="calibrate"
        ),
    },
    routes=("api:router", "page:router"),
    label_links="page:links_of_labels",
)
