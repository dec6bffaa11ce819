"""`run --watch`: a stdio server that is restarted in its session."""
