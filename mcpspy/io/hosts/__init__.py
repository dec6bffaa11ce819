"""The configurations of MCP hosts on this machine: finding, reading and changing them."""

from mcpspy.io.hosts.table import HOSTS, Host

__all__ = ["HOSTS", "Host"]
