"""Mock server: loads recordings, matches requests, selects responses and plays them.

`Recordings` holds the recorded messages and is shared by all clients; `MockSession` is the state of one client.
"""
