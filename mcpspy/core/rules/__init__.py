"""Rules: of which messages something is made, and what.

`rule` is one of them, `file` and `flag` read them as people write them, the
other modules are what an action needs. Who asks them is `core.intercept`.
"""
