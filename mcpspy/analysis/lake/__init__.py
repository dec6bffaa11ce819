"""Sessions as tables: the columns of the lake, the rows of a session, and saved queries."""
