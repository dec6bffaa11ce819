"""Traffic made safe to show: the one door between what peers sent and a terminal.

What is dangerous is `core.inert`'s to know: exported documents need it too.
"""

from mcpspy.core.inert import inert, inert_bytes

__all__ = ["inert", "inert_bytes"]
