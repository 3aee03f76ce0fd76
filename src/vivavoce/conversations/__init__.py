"""Conversations in and out: readers and writers of formats, one file each, with a report of what was lost.

    from vivavoce.exchange import Loss, read, write

`formats` has their names, `conversations` what formats of messages have in common, `records` how files are read.
"""
