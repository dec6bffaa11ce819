"""The form of an extension of MCP: identifier, methods, metadata, shapes."""

from __future__ import annotations

from typing import NamedTuple

FINAL, DRAFT = "final", "draft"


class ExtensionMethod(NamedTuple):
    name: str
    sender: str
    """`client` or `server`."""
    subject: str | None = None
    """Parameter that identifies the target."""
    since: str = ""
    """First revision, if earlier ones have no such method; otherwise empty."""
    setting: str | None = None
    """Setting of the server that must be true; None if it only has to declare the extension."""
    is_optional: bool = False
    """A server that declares the extension may lack the method."""
    secret: tuple[str, ...] = ()
    """Path in its params to a secret that they must have: the receiver needs it."""


class ExtensionListing(NamedTuple):
    """A list of a server that belongs to its interface, in pages like those of the core."""

    method: str
    member: str
    """Member of the result that has the items."""
    key: str
    """Member of an item that identifies it."""
    noun: str
    for_model: str | None = None
    """Member of an item that hosts show their model; None if they show none."""


class ExtensionDocument(NamedTuple):
    """A JSON document beside the endpoint, which a client gets over HTTP before it connects."""

    name: str
    path: str
    """The end of its path."""
    media: str
    """Its media type."""


class McpExtension(NamedTuple):
    """An extension, as its specification defines it."""

    id: str
    """Its identifier in `capabilities.extensions`."""
    title: str
    state: str
    """`final` or `draft`."""
    source: str
    """URL of its specification."""
    since: str
    """First revision with which it is specified; its shapes hold from this one on."""
    methods: tuple[ExtensionMethod, ...] = ()
    listings: tuple[ExtensionListing, ...] = ()
    """Lists that `trust`, `diff` and `drift` compare by item, as those of the core."""
    client_declares: bool = False
    """The client must declare it, too, with each request that uses it."""
    meta: tuple[str, ...] = ()
    """Keys of `_meta`, and prefixes of keys, which end with a slash."""
    result_types: tuple[str, ...] = ()
    """Values of `resultType`."""
    not_found: tuple[str, ...] = ()
    """Methods that refuse an unknown target with -32602."""
    hidden_media: tuple[str, ...] = ()
    """Media types of resources that are never shown to a model."""
    audience: tuple[str, ...] = ()
    """Path in the `_meta` of a tool to the list of those that may call it, `model` among them."""
    documents: tuple[ExtensionDocument, ...] = ()
    """Documents that are recorded."""
    secret_headers: tuple[str, ...] = ()
    """Headers of HTTP whose values are never recorded, in lower case."""
    headers: tuple[str, ...] = ()
    """Other headers of HTTP that are recorded, in lower case."""
    shapes: str = ""
    """Shapes of its messages, in the notation of `analysis/lint/shapes`."""
