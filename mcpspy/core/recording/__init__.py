"""The recording format: encoding of lines, decoding of entries."""
