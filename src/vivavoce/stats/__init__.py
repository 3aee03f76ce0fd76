"""Pure arithmetic: intervals, pass^k, paired differences, agreement."""
