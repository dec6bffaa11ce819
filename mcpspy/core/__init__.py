"""Bytes to Session: pure, without clock, file, thread, socket or screen.

Every function here takes bytes or values, and the time as an argument, and
returns values; who reads and writes is `io`'s business.
"""
