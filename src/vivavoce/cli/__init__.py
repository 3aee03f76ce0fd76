"""The command line, one file a command."""

RUN = "[RUN]"
"""What help shows for the value of an option that names a run, or the latest one where it stands alone."""
