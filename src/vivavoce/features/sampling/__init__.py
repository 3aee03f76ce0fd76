"""Sampling: judge some of many conversations so that the rates hold for all, and plan how many samples are needed."""

from vivavoce.extensions import Command, Feature

FEATURE = Feature(
    __name__,
    commands={
        "plan": Command("Plan how many samples, trials and labels a change needs.", "command:command", panel="Trust")
    },
    open_sampler="sampler:open_sampler",
    sampling_report="report:sampling_lines",
)
