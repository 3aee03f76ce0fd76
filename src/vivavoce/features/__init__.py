"""The built-in features: a folder each, found through the hooks of `vivavoce.hookspecs`, independent of each other.

This module says what each of them adds. Their folders are imported when a hook is called.
"""

from __future__ import annotations

from collections.abc import Mapping

from vivavoce.extensions import Command, Feature, Page

FEATURES: Mapping[str, Feature] = {
    "metric_tests": Feature(
        "vivavoce.features.metric_tests",
        commands={
            "metrics": Command(
                "Test metrics: plant known defects in good conversations.", "command:command", panel="Trust"
            )
        },
    ),
    "sampling": Feature(
        "vivavoce.features.sampling",
        commands={
            "plan": Command(
                "Plan how many samples, trials and labels a change needs.", "command:command", panel="Trust"
            )
        },
        open_sampler="sampler:open_sampler",
        sampling_report="report:sampling_lines",
    ),
    "compare": Feature(
        "vivavoce.features.compare",
        commands={
            "compare": Command(
                "Compare two runs, sample by sample.", "command:command", panel="Results", before="export"
            )
        },
        routes=("api:router", "page:router", "samples_page:router"),
        tabs=(Page("Compare", "/compare"),),
        run_page_links="choosing:links_of_run",
        comparison_link="choosing:comparison_link",
    ),
    "trends": Feature(
        "vivavoce.features.trends",
        routes=("api:router", "page:router"),
        tabs=(Page("Trends", "/trends"),),
        suite_links="page:links_of_suite",
    ),
    "groups": Feature(
        "vivavoce.features.groups",
        commands={
            "groups": Command("Compare groups in a run: tags, targets, languages.", "command:command", of="compare")
        },
        routes=("api:router",),
        run_list_parameters=("group",),
        run_list_parts="page:groups_of_list",
        tag_finding="report:tag_finding",
    ),
    "labels": Feature(
        "vivavoce.features.labels",
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
    ),
    "calibration": Feature(
        "vivavoce.features.calibration",
        commands={
            "calibrate": Command(
                "Calibrate a judge against human labels.", "command:calibrate", panel="Trust", before="metrics"
            ),
            "cascade": Command("Choose when to use a cheap judge, to save calls.", "command:cascade", of="calibrate"),
        },
        routes=("api:router", "page:router"),
        label_links="page:links_of_labels",
    ),
    "clusters": Feature(
        "vivavoce.features.clusters",
        commands={
            "clusters": Command(
                "Group the failures of a run by what they have in common.", "command:command", of="compare"
            )
        },
        routes=("api:router", "page:router"),
        run_page_links="page:links_of_run",
    ),
    "forks": Feature(
        "vivavoce.features.forks",
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
    ),
    "mcp": Feature(
        "vivavoce.features.mcp",
        commands={"mcp": Command("Serve the store to an assistant, over MCP.", "command:command", of="serve")},
    ),
    "realism": Feature(
        "vivavoce.features.realism",
        commands={"realism": Command("Compare simulated users with real ones.", "command:command", of="compare")},
    ),
    "watch": Feature(
        "vivavoce.features.watch",
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
    ),
    "batches": Feature(
        "vivavoce.features.batches",
        commands={"batches": Command("List or cancel pending batch jobs.", "command:command", of="judge")},
        ask_in_batches="questions:BatchQuestions",
        export_requests="export:export_requests",
        import_responses="command:import_responses",
    ),
    "parts": Feature(
        "vivavoce.features.parts",
        commands={
            "merge": Command("Merge the parts of a run into one run.", "command:command", of="runs", before="note")
        },
        work_in_parts="command:work_in_parts",
    ),
    "publish": Feature(
        "vivavoce.features.publish",
        commands={
            "publish": Command(
                "Send a run to Langfuse, Phoenix, OpenTelemetry, MLflow, W&B.", "command:command", of="export"
            )
        },
        register_exporters={
            "langfuse": "conversation:langfuse_folder",
            "otel": "conversation:otel_folder",
            "phoenix": "conversation:phoenix_folder",
        },
        register_publishers={
            "langfuse": "conversation:to_langfuse",
            "phoenix": "conversation:to_phoenix",
            "otel": "conversation:to_otel",
            "mlflow": "mlflow:publish",
            "wandb": "wandb:publish",
        },
    ),
    "frameworks": Feature(
        "vivavoce.features.frameworks",
        register_frameworks={
            "openai-agents": "openai_agents:FRAMEWORK",
            "pydantic-ai": "pydantic_ai:FRAMEWORK",
            "crewai": "crewai:FRAMEWORK",
            "google-adk": "google_adk:FRAMEWORK",
            "autogen": "autogen:FRAMEWORK",
            "llama-index": "llama_index:FRAMEWORK",
            "haystack": "haystack:FRAMEWORK",
            "langchain": "langchain:FRAMEWORK",  # fits the most objects, so it is asked last
        },
    ),
    "formats": Feature(
        "vivavoce.features.formats",
        commands={
            "convert": Command(
                "Convert conversations from one format to another.", "command:command", panel="Data", before="dataset"
            )
        },
        register_formats={
            "openai": "openai:CHAT",
            "otel": "otel:FORMAT",
            "openinference": "otel:PHOENIX",
            "langfuse": "langfuse:FORMAT",
            "langsmith": "langsmith:FORMAT",
            "langchain": "langchain:FORMAT",
            "openai-responses": "openai:RESPONSES",
            "openai-agents": "openai_agents:SESSIONS",
            "openai-agents-traces": "openai_agents:TRACES",
            "anthropic": "anthropic:FORMAT",
            "vercel": "vercel:FORMAT",
            "gemini": "gemini:FORMAT",
            "google-adk": "google_adk:FORMAT",
            "pydantic-ai": "pydantic_ai:FORMAT",
            "sharegpt": "sharegpt:FORMAT",
            "ragas": "ragas:FORMAT",
            "deepeval": "deepeval:FORMAT",
            "promptfoo": "promptfoo:FORMAT",
            "letta-evals": "letta:EVALS",
            "openai-tuning": "tuning:OPENAI_TUNING",
            "openai-preference": "tuning:OPENAI_PREFERENCE",
            "anthropic-tuning": "tuning:ANTHROPIC_TUNING",
            "gemini-tuning": "tuning:GEMINI_TUNING",
            "gemini-preference": "tuning:GEMINI_PREFERENCE",
            "atif": "atif:FORMAT",
            "letta": "letta:FORMAT",
            "autogen": "autogen:FORMAT",
            "inspect": "inspect_log:FORMAT",
            "crewai": "crewai:FORMAT",
            "livekit": "livekit:FORMAT",
            "pipecat": "pipecat:FORMAT",
            "tau": "tau:FORMAT",
        },
    ),
}
"""The features by name, in the order in which they are asked."""
