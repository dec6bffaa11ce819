"""Traffic inspector and record/replay proxy for the Model Context Protocol.

This module defines only the version: every host starts `mcpspy run` once per server, so the import must be fast.
"""

__version__ = "0.1.0"
