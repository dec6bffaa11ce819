"""The filter language: lexer, parser, fields, values, paths."""
