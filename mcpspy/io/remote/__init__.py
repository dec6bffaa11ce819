"""Sessions of another machine over ssh: a copy of its recordings, and its control sockets."""
