"""Configuration files of hosts: parsers that keep positions; wrapping and unwrapping of servers."""
