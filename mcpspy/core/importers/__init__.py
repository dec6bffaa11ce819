"""Importers of other tools' files, one module per format: from bytes or database rows to lines of a recording."""
