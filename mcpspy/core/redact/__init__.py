"""Redaction of secrets, before they are written and in existing recordings.

`Redactor` turns lines of a recording into lines without secrets; `prefilter` tells within
microseconds that nearly all of them have none.
"""
