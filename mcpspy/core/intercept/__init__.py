"""Interception of messages by rules, viewers and the watchdog, without I/O."""
