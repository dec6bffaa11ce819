"""A stdio server offered over HTTP: the messages of its clients, and of a process that they share."""
