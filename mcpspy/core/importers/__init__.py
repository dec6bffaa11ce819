"""Files of other tools → lines of a recording, one module per format.

Input is bytes or database rows, output the lines of a recording.
"""
