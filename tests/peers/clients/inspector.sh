#!/bin/sh
# The Inspector's command line client (2.12), of .peers/.
#
#     tests/peers/clients/inspector.sh --method METHOD [OPTIONS] -- COMMAND ARGS...
#     tests/peers/clients/inspector.sh --method METHOD [OPTIONS] URL
#
# Options before, the command after `--`: what follows is passed on as it is, a second `--` included.
# With the command first the Inspector swallows that second `--`, and takes any option it knows for its own.
set -eu

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
exec node "$here/../../../.peers/node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js" --cli "$@"
