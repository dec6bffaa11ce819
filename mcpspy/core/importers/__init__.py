"""Sessions out of the files of other tools: one module a format, and the table of them.

Pure: what stands in the file comes as bytes or rows, what a recording says goes out as lines of one.
"""
