"""The only layer that touches the world: files, pipes, processes, sockets, clocks."""
