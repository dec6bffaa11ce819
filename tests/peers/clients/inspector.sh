#!/bin/sh
# The Inspector's command line client (2.12), of .peers/.
#
#     tests/peers/clients/inspector.sh --method METHOD [OPTIONS] -- COMMAND ARGS...
#     tests/peers/clients/inspector.sh --method METHOD [OPTIONS] URL
#
# Options come before `--`, the command after it: all that follows is passed on unchanged, including a second `--`.
# With the command first, the Inspector drops that second `--`, and interprets any option that it knows.
set -eu

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
exec node "$here/../../../.peers/node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js" --cli "$@"
