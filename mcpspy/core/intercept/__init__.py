"""What becomes of messages on their way: rules, viewers and the watchdog, as one pure machine."""
