"""A session as one HTML page to read and search offline: page, style and script."""
