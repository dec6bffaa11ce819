"""Files of other tools, read and written as recordings. What is in them is `core.importers`'s."""
