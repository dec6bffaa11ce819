"""Interception rules: which messages they match, and what they do.

`model` is the rule, `parser` reads rules from files and flags, `template` and `edit` implement actions.
`core.intercept` evaluates them.
"""
