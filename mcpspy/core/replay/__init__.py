"""A recording as a client: plan, player, value substitution."""
