"""The results of a run in the tools where people look at traces and experiments: one file a tool."""
