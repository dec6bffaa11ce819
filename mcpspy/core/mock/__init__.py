"""A recording as the server it was made from: pure, for any transport to serve.

`Library` is what was recorded, and is shared; `Conversation` is one client's state.
"""
