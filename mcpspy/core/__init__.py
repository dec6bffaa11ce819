"""Parsing, correlation, interception, mock and replay, without clock, file, thread, socket or screen.

Functions take bytes or values, and the time as an argument, and return values. Input and output belong to `io`.
"""
