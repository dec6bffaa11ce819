"""The recording format: encode lines, decode entries, the fast decoder of plain lines."""
