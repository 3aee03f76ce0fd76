"""Publishing: a run with its scores in the tools where people look at traces and experiments, one file a tool."""

from vivavoce.extensions import Command, Feature

FEATURE = Feature(
    __name__,
    commands={
        "publish": Command(
            "Send a run to Langfuse, Phoenix, OpenTelemetry, MLflow, W&B.", "command:command", of="export"
        )
    },
    exporters={
        "langfuse": "conversation:langfuse_folder",
        "phoenix": "conversation:phoenix_folder",
        "otel": "conversation:otel_folder",
    },
    publishers={
        "langfuse": "conversation:to_langfuse",
        "phoenix": "conversation:to_phoenix",
        "otel": "conversation:to_otel",
        "mlflow": "mlflow:publish",
        "wandb": "wandb:publish",
    },
)
