"""The configurations of MCP hosts on this machine: where they are, what they hold, and changing them."""

from mcpspy.io.hosts.table import HOSTS, Host

__all__ = ["HOSTS", "Host"]
