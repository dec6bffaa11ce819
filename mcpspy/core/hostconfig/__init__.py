"""A host's configuration as text: where a server stands in it, and how to change nothing else."""
