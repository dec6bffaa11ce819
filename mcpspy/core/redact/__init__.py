"""Secrets: prefilter, JSON walker, token patterns, placeholders.

`Redactor` turns lines of a recording into lines without secrets; `prefilter` finds within
microseconds that nearly all of them contain none.
"""
