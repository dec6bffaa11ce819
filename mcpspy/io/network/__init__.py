"""Network for clients and servers: outgoing connections, and listening sockets."""
