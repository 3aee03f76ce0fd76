"""The command line, for tests of commands."""

from command_line import COLUMNS, Viva, viva, viva_process

__all__ = ["COLUMNS", "Viva", "viva", "viva_process"]
