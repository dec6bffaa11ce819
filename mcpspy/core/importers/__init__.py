"""Importers of other tools' files: one module per format, and the table of formats.

Input is bytes or database rows, output the lines of a recording.
"""
