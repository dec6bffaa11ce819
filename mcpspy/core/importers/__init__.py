"""Importers of other tools' files, one module per format.

They convert bytes or database rows to lines of a recording.
"""
