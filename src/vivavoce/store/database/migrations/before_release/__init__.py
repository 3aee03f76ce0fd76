"""The steps of stores that were made before the first release, with numbers below 1001; nothing is added here."""
