"""Publishing: a run with its scores in the tools where people look at traces and experiments, one file a tool."""
