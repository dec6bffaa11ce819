"""The only floor that touches the world: files, pipes, processes, sockets, clocks."""
