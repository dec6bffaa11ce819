"""The only layer with access to files, pipes, processes, sockets and clocks."""
