#!/bin/sh
# Install the tools that the benchmarks compare with into .peers/, each into a separate environment: they conflict.
#
#     bench/rivals.sh [PYTHON]
#
# Does nothing if the installed packages are newer than the requirements.
set -eu

python=${1:-python3}
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
peers=$(CDPATH='' cd -- "$here/.." && pwd)/.peers

# install NAME PYTHON REQUIREMENT…: into .peers/NAME, with the versions of rivals-NAME.txt
install() {
    rival=$peers/$1
    constraints=$here/rivals-$1.txt
    interpreter=$2
    stamp=$rival/installed
    if [ -e "$stamp" ] && [ -z "$(find "$constraints" "$here/rivals.sh" -newer "$stamp")" ]; then
        echo "rivals: up to date in .peers/$1/"
        return
    fi
    rm -f "$stamp"
    "$rival/bin/python" -m pip --version >/dev/null 2>&1 || "$interpreter" -m venv --clear "$rival"
    name=$1
    shift 2
    "$rival/bin/python" -m pip install --quiet --disable-pip-version-check --constraint "$constraints" "$@"
    touch "$stamp"
    echo "rivals: installed in .peers/$name/"
}

# Print a Python of at least 3.12: the given one, or any installed one. Those of pyenv may not be on the path.
newer_python() {
    for found in "$python" python3.13 python3.12 python3 "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3.1[2-9]*/bin/python; do
        if "$found" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 12))' 2>/dev/null; then
            echo "$found"
            return
        fi
    done
    return 1
}

install mitmproxy "$python" mitmproxy
install mcphawk "$python" mcphawk
install mcp-rec "$python" mcp-rec
install mcp-recorder "$python" mcp-recorder 'starlette<1'

if newer=$(newer_python); then
    install mcp-cassette "$newer" 'mcp-cassette[http]'
    install mcp-vcr "$newer" mcp-vcr
else
    echo "rivals: mcp-cassette and mcp-vcr need Python 3.12, which is not installed; they are skipped" >&2
fi
