"""A session as a fold over its entries: correlation, exchanges, and an index for a million rows."""
