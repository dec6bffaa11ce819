"""A recording as the server it was made from: pure, for any transport to serve.

`Recordings` holds what was recorded and is shared; `MockSession` is the state of one client.
"""
