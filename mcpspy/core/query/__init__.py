"""The filter language: lexer, parser, fields, items."""
