"""A recording as a server: load, match, select, play.

`Recordings` holds what was recorded and is shared; `MockSession` is the state of one client.
"""
