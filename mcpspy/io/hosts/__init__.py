"""The MCP hosts on this machine, and their configuration files."""

from mcpspy.io.hosts.table import HOSTS, Host

__all__ = ["HOSTS", "Host"]
