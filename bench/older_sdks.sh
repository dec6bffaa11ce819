#!/bin/sh
# The SDKs of older revisions, for bench/eras_sdk.py: their clients have no revision after 2024-11-05, 2025-03-26 and
# 2025-06-18. They go into .peers; `make peers` comes first.
set -eu
cd "$(dirname "$0")/../.peers"
python=${1:-python3}

# SDK 1.2 to 1.12 import a function that pydantic 2.11 removed.
for version in 1.2.1 1.9.4 1.12.4; do
    "$python" -m venv "mcp${version%.*}"
    "mcp${version%.*}/bin/pip" install --quiet "mcp==$version" "pydantic<2.11"
done
for version in 1.0.4 1.11.0 1.15.1; do
    mkdir -p "sdk${version%.*}"
    echo '{"private": true}' > "sdk${version%.*}/package.json"
    npm install --silent --prefix "sdk${version%.*}" "@modelcontextprotocol/sdk@$version"
done
