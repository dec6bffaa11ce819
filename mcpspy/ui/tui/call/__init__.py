"""Calls from a form: the choice of a server and a tool, and the form."""
