"""Calibrations: how far a judge can be believed, by the labels of people; and cascades of two judges."""

from vivavoce.extensions import Command, Feature

FEATURE = Feature(
    __name__,
    commands={
        "calibrate": Command(
            "Calibrate a judge against human labels.", "command:calibrate", panel="Trust", before="metrics"
        ),
        "cascade": Command("Choose when a cheap judge decides, to save calls.", "command:cascade", of="calibrate"),
    },
    routes=("api:router", "page:router"),
    label_links="page:links_of_labels",
)
