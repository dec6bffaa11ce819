"""Trust: the lockfile of reviewed servers, and the check of live messages against it."""
