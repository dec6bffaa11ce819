"""The extension Events (SEP-3415), a draft: events that a client polls, streams or receives.

A webhook is a POST of the server to a URL of the client, signed with the secret of the subscription as Standard Webhooks
describe it. The secret is `delivery.secret` of `events/subscribe`, whose name is one of those that are always redacted.
"""

from mcpspy.core.protocol.extensions.extension import DRAFT, ExtensionMethod, McpExtension

SOURCE = "https://github.com/modelcontextprotocol/experimental-ext-triggers-events/blob/main/docs/design-sketch-proposal.md"

DELIVERY_ERRORS = (
    "connection_refused",
    "timeout",
    "tls_error",
    "http_4xx",
    "http_5xx",
    "challenge_failed",
)
"""Categories of failed deliveries of a webhook: the response itself is not for the subscriber to read."""

WEBHOOK_ID, TIMESTAMP, SIGNATURE = "webhook-id", "webhook-timestamp", "webhook-signature"
"""Headers of a webhook (Standard Webhooks)."""

SUBSCRIPTION = "x-mcp-subscription-id"

CONTROLS = ("gap", "terminated", "verification")
"""Types of webhooks without an event."""


def is_webhook(body: object) -> bool:
    """Return whether the body of a POST is that of a webhook: an event, or a message about a subscription."""
    if not isinstance(body, dict) or "jsonrpc" in body:
        return False
    return {"eventId", "name", "timestamp"} <= body.keys() or body.get("type") in CONTROLS


EXTENSION = McpExtension(
    id="io.modelcontextprotocol/events",
    title="Events",
    state=DRAFT,
    source=SOURCE,
    since="2026-07-28",
    methods=(
        ExtensionMethod("events/list", "client", "cursor"),
        ExtensionMethod("events/poll", "client"),
        ExtensionMethod("events/stream", "client", "name"),
        ExtensionMethod("events/subscribe", "client", "name", secret=("delivery", "secret")),
        ExtensionMethod("events/unsubscribe", "client", "name"),
        ExtensionMethod("notifications/events/active", "server"),
        ExtensionMethod("notifications/events/event", "server", "name"),
        ExtensionMethod("notifications/events/error", "server"),
        ExtensionMethod("notifications/events/heartbeat", "server"),
        ExtensionMethod("notifications/events/terminated", "server"),
    ),
    secret_headers=(SIGNATURE,),
    headers=(WEBHOOK_ID, TIMESTAMP, SUBSCRIPTION),
    shapes=r"""
moment = /^\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:Z|[+-]\d\d:?\d\d)$/ EXT501 "an ISO 8601 time"
deliveryError = /^(?:DELIVERY_ERRORS)$/ EXT501 "a category of errors"

EventType  events#listing-available-events  EXT501
  name  string
  description?  string
  delivery  ["poll"|"push"|"webhook"]
  inputSchema? payloadSchema? _meta?  object

Occurrence  events#eventoccurrence-schema  EXT501
  eventId name  string
  timestamp  moment
  data  object
  cursor?  string|null

EventFilter  events#request-eventspoll  EXT501
  name  string
  arguments?  object
  cursor?  string|null
  maxAgeMs?  integer 0..

Webhook  events#subscribing-eventssubscribe  EXT501
  mode?  "webhook"
  url secret  string

WebhookAddress  events#unsubscribing-eventsunsubscribe  EXT501
  url  string

DeliveryStatus  events#webhook-delivery-status  EXT501
  active  boolean
  lastDeliveryAt? failedSince?  moment|null
  lastError?  deliveryError|null

request events/list  events#request-eventslist  EXT501
  cursor?  string

result events/list  events#response  EXT501
  events  [EventType]
  nextCursor?  string

request events/poll  events#request-eventspoll  EXT501
  + EventFilter
  maxEvents?  integer 1..

result events/poll  events#response-1  EXT501
  events  [Occurrence]
  cursor  string|null
  truncated? hasMore?  boolean
  nextPollMs?  integer 0..

request events/stream  events#request-eventsstream  EXT501
  + EventFilter

request events/subscribe  events#subscribing-eventssubscribe  EXT501
  + EventFilter
  delivery  Webhook
  ttlMs?  integer 0..|null

result events/subscribe  events#subscribing-eventssubscribe  EXT501
  id  string
  refreshBefore  moment|null
  cursor?  string|null
  truncated?  boolean
  deliveryStatus?  DeliveryStatus

request events/unsubscribe  events#unsubscribing-eventsunsubscribe  EXT501
  name  string
  arguments?  object
  delivery  WebhookAddress

notification notifications/events/active  events#event-delivery  EXT501
  cursor  string|null
  truncated?  boolean

notification notifications/events/event  events#event-delivery  EXT501
  + Occurrence

notification notifications/events/heartbeat  events#lifecycle  EXT501
  cursor  string|null

notification notifications/events/error  events#event-delivery  EXT501
  error  EventError

EventError  events#event-delivery  EXT501
  code  integer
  message  string
""".replace("DELIVERY_ERRORS", "|".join(DELIVERY_ERRORS)),
)
