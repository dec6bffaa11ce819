"""Extensions of MCP: one module of data for each, and `EXTENSIONS`, which has them all.

An extension is a module here with an `EXTENSION`; nothing else names it. Tables of the specification, lint, labels,
negotiation and the context cost read it from here. The specification of each is its `source`; SEP-2133 defines how
peers declare extensions (modelcontextprotocol.io/seps/2133-extensions).
"""

from __future__ import annotations

import pkgutil
from collections.abc import Mapping
from importlib import import_module
from typing import Any

from mcpspy.core.protocol.extensions.extension import (
    FINAL,
    ExtensionDocument,
    ExtensionListing,
    ExtensionMethod,
    McpExtension,
)

FIELD = "extensions"
"""Member of the capabilities of a peer that has its extensions, each with its settings."""

EXTENSIONS: dict[str, McpExtension] = {
    extension.id: extension
    for module in pkgutil.iter_modules(__path__)
    if module.name != "extension"
    for extension in (import_module(f"{__name__}.{module.name}").EXTENSION,)
}
"""The known extensions, by id."""

EXTENSION_METHODS: dict[str, tuple[McpExtension, ExtensionMethod]] = {
    method.name: (extension, method) for extension in EXTENSIONS.values() for method in extension.methods
}
"""Method → its extension, also a draft: its names may be those of other methods, so only those of final ones are sure."""

EXTENSION_LISTINGS: dict[str, tuple[McpExtension, ExtensionListing]] = {
    listing.method: (extension, listing)
    for extension in EXTENSIONS.values()
    if extension.state == FINAL
    for listing in extension.listings
}
"""Method → its extension, for the lists of final ones."""

RESULT_TYPES = frozenset(kind for extension in EXTENSIONS.values() for kind in extension.result_types)
"""Values of `resultType` that extensions add."""

SECRET_HEADERS = frozenset(name for extension in EXTENSIONS.values() for name in extension.secret_headers)
"""Headers of extensions, also of drafts, whose values are never recorded."""

HEADERS = frozenset(name for extension in EXTENSIONS.values() for name in extension.headers)
"""Headers of extensions, also of drafts, that are recorded."""

DOCUMENTS = tuple(document for extension in EXTENSIONS.values() for document in extension.documents)

_META = tuple(key for extension in EXTENSIONS.values() for key in extension.meta)


def declared(capabilities: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the extensions in the capabilities of a peer, with their settings."""
    found = (capabilities or {}).get(FIELD)
    return found if isinstance(found, dict) else {}


def document_of(target: str, media: str) -> ExtensionDocument | None:
    """Return the document at a path with a query, or of this media type; None for anything else."""
    path, media = target.partition("?")[0], media.partition(";")[0].strip().lower()
    for document in DOCUMENTS:
        if media == document.media or path.endswith(document.path):
            return document
    return None


def is_defined_key(key: str) -> bool:
    """Return whether an extension defines a key of `_meta`, or the prefix of it."""
    return any(key == one or (one[-1] == "/" and key.startswith(one)) for one in _META)


def is_for_model(item: Mapping[str, Any]) -> bool:
    """Return whether a host shows a listed tool, or the contents of a resource, to its model."""
    for extension in EXTENSIONS.values():
        media = str(item.get("mimeType", "")).replace(" ", "").lower()
        if media in extension.hidden_media:
            return False
        audience: Any = item.get("_meta")
        for step in extension.audience:
            audience = audience.get(step) if isinstance(audience, dict) else None
        if extension.audience and isinstance(audience, list) and "model" not in audience:
            return False
    return True
