"""Configurations of MCP hosts as text: finding the servers in one, and changing nothing else."""
