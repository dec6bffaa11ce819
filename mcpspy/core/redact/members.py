"""Members of JSON objects that matter to redaction.

The tables of `core.redact.walker`: members of the protocol, and those that name, describe or contain a secret.
"""

MESSAGE_MEMBERS = frozenset(b"jsonrpc id method".split())

PROTOCOL_MEMBERS = frozenset(
    b"""progressToken cursor nextCursor requestState taskId taskIds requestId elicitationId subscriptionId
    io.modelcontextprotocol/subscriptionId protocolVersion supportedVersions
    io.modelcontextprotocol/protocolVersion resultType""".split()
)
"""Members of the protocol at any level, except below `PAYLOADS`."""

NAMED_BY_PROTOCOL = frozenset(b"params tools prompts arguments ref argument".split())
"""Members whose value has a `name` that the protocol compares: of a tool, a prompt, or an argument. Any other `name`
(of a resource, a client, a root, a server) is a text for people, except below `PAYLOADS`, where all names are."""

NOTE_MEMBERS = frozenset(b"t from note eol stream http why id retry event hung_up next part by pipe".split())

PAYLOADS = frozenset(
    b"arguments structuredContent content contents messages data inputResponses elicitation".split()
)
"""Below these are the peers' own values; a member `name` or `cursor` there is not the protocol's."""

SCHEMAS = frozenset(b"inputSchema outputSchema requestedSchema $defs".split())
"""A schema describes a password and does not contain one: names are ignored in it. An object elsewhere that looks like a
schema is none: the properties of a page in Notion look like those of a schema, and have the values in them."""

URIS = frozenset(b"uri uriTemplate path".split())
"""Members whose value is a URI; its path is an identifier, not a secret."""

ENCODED_URLS = frozenset(b"path location".split())
"""Members of notes whose value is a URL with percent-encoding."""

NAME_MAPS = frozenset(b"arguments properties patternProperties $defs definitions".split())
"""Members whose keys are names of arguments and properties."""

ABOUT = frozenset(
    b"""type name id description title kind label format in scheme $ref required enum pattern minLength maxLength
    minimum maximum purpose reference section created_at updated_at createdAt updatedAt""".split()
)
"""Members below a secret's name that describe the secret and do not contain it, in a schema and elsewhere."""

NAMES = frozenset(b"name key Name Key variable ParameterKey id label title field header option".split())
"""Members that contain the name of a secret, beside one of `NAMED_VALUES`."""

NAMED_VALUES = frozenset(b"value Value ParameterValue".split())

NAMED_OBJECTS = NAMED_VALUES | {b"payload"}
"""Members of which everything is secret, beside the name of a secret: Google's Secret Manager has a `payload`."""

GRANTS = frozenset(b"grant_type grantType code_verifier codeVerifier redirect_uri redirectUri".split())
"""Members of a request for a token (RFC 6749, 4.1.3): the `code` beside them is one of authorization."""

VALUES = frozenset(b"value data content plaintext text key token".split())
"""Members that contain the secret, in a list of secrets."""

RAW_HEADERS = (b"rawHeaders", b"raw_headers")
"""Members with the names and values of headers in turn, as Node.js has them. A list of `headers` may have only names."""

ANSWERS = frozenset((b"content", b"arguments"))
"""Members with the answers to a form: of an elicitation, and the arguments of a tool."""

NOT_ASKED = frozenset(b"type text data uri mimeType".split())
"""Members of content blocks, which are also below `content`: a form cannot make them secret."""

PAGE = b"text/html;profile=mcp-app"
"""The media type of a page of an app (MCP Apps, 2026-01-26, UI Resource Format)."""

PAGE_MEMBERS = frozenset((b"text", b"blob"))
"""Members that contain the page, beside its `mimeType`."""
