"""Traffic inspector and record/replay proxy for the Model Context Protocol.

The public names are those of `__all__` (docs/api.md); `__init__.pyi` has their types. Each is imported on first use:
every host starts `mcpspy run` once per server, so the import of this module must be fast.
"""

__version__ = "0.1.0"

_MODULES = {
    "CannotStart": "mcpspy.errors",
    "Content": "mcpspy.ui.views.content",
    "Exchange": "mcpspy.ui.api.session",
    "LiveExchange": "mcpspy.ui.api.live",
    "LiveHead": "mcpspy.ui.api.live",
    "LiveMessage": "mcpspy.ui.api.live",
    "LiveSession": "mcpspy.ui.api.live",
    "McpspyError": "mcpspy.errors",
    "Message": "mcpspy.ui.api.session",
    "Mock": "mcpspy.ui.api.mock",
    "Recording": "mcpspy.ui.api.write",
    "Session": "mcpspy.ui.api.session",
    "UsageError": "mcpspy.errors",
    "diff": "mcpspy.ui.api.results",
    "follow": "mcpspy.ui.api.session",
    "lint": "mcpspy.ui.api.results",
    "read": "mcpspy.ui.api.session",
    "record": "mcpspy.ui.api.record",
    "sessions": "mcpspy.ui.api.session",
    "stats": "mcpspy.ui.api.results",
}
_CLASSES = {
    "Exchange": "ReadExchange",
    "LiveSession": "ScriptSession",
    "Message": "ReadMessage",
    "Mock": "InProcessMock",
    "Recording": "RecordingFile",
    "Session": "ReadSession",
}
"""Public name → name of the class, if they differ: the core has classes of the same name."""

__all__ = ["__version__", *_MODULES]  # noqa: PLE0604 - the keys are strings.


def __getattr__(name: str) -> object:
    """Import a public name. Raise AttributeError for any other name."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = globals()[name] = getattr(import_module(_MODULES[name]), _CLASSES.get(name, name))
    return value


def __dir__() -> "list[str]":  # An old Python reads this, too, before it is refused.
    return sorted(__all__)
