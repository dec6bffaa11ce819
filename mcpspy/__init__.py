"""The traffic inspector and record/replay proxy for the Model Context Protocol.

Owns the version and nothing else: `mcpspy run` is started once per server by
every host, so importing the package must cost nothing.
"""

__version__ = "0.1.0"
