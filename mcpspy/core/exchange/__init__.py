"""One exchange over HTTP as a state machine: it takes events and returns commands, without sockets."""
