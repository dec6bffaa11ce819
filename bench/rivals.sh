#!/bin/sh
# Install mitmproxy into .peers/mitmproxy, for bench/http.py to compare: it can share an environment with nothing.
#
#     bench/rivals.sh [PYTHON]
#
# Does nothing when what is installed is newer than what is asked for.
set -eu

python=${1:-python3}
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
rivals=$(CDPATH='' cd -- "$here/.." && pwd)/.peers/mitmproxy
stamp=$rivals/installed

if [ -e "$stamp" ] && [ -z "$(find "$here/rivals.txt" "$here/rivals.sh" -newer "$stamp")" ]; then
    echo "rivals: up to date in .peers/mitmproxy/"
    exit 0
fi
rm -f "$stamp"
"$rivals/bin/python" -m pip --version >/dev/null 2>&1 || "$python" -m venv --clear "$rivals"
"$rivals/bin/python" -m pip install --quiet --disable-pip-version-check \
    --constraint "$here/rivals.txt" mitmproxy
touch "$stamp"
echo "rivals: installed in .peers/mitmproxy/"
