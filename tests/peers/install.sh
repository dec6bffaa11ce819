#!/bin/sh
# Install the peers into .peers/ at the repository's root: Python environments and Node packages.
#
#     tests/peers/install.sh [PYTHON]
#
# Does nothing if the installed packages are newer than the requirements.
set -eu

python=${1:-python3}
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
root=$(CDPATH='' cd -- "$here/../.." && pwd)
peers=$root/.peers
stamp=$peers/installed

stop() {
    echo "install.sh: $1" >&2
    exit 1
}

# The path of users often lacks the folder of sshd.
has() {
    PATH="$PATH:/usr/sbin" command -v "$1" >/dev/null
}

# The terminal that the terminal UI is tested in, the shells that completion is tested in, and the server of --ssh.
# Prometheus reads what `mcpspy metrics` serves. No package of Python or Node contains them.
programs() {
    missing=
    for program in tmux bash zsh fish prometheus; do
        has $program || missing="$missing $program"
    done
    has ssh || missing="$missing openssh-client"
    has sshd || missing="$missing openssh-server"
    [ -n "$missing" ] || return 0
    if command -v brew >/dev/null; then
        brew install --quiet $missing
    elif [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
        apt-get update -qq && apt-get install -y -qq --no-install-recommends $missing >/dev/null
    fi
    for program in $missing; do
        case $program in
            openssh-client) has ssh ;;
            openssh-server) has sshd ;;
            *) has "$program" ;;
        esac ||
            stop "$program is missing; install it (on Debian and Ubuntu: apt install $program)"
    done
}

current() {
    [ -e "$stamp" ] && [ -x "$peers/venv/bin/python" ] || return 1
    for input in requirements.txt constraints.txt mcp1.txt sdk.txt phoenix.txt package.json .npmrc chromium.mjs install.sh; do
        [ -z "$(find "$here/$input" -newer "$stamp")" ] || return 1
    done
    [ -z "$(find "$root/pyproject.toml" "$root/constraints.txt" -newer "$stamp")" ]
}

# layer NAME BELOW PIP-OPTIONS...: an environment with all packages of BELOW and those that are installed here. It takes
# a fifth of the time of a separate environment, and BELOW does not change.
layer() {
    name=$1 below=$2
    shift 2
    "$python" -m venv --clear --without-pip "$peers/$name"
    site='import sysconfig; print(sysconfig.get_path("purelib"))'
    echo "import site; site.addsitedir('$("$peers/$below/bin/python" -c "$site")')" \
        >"$("$peers/$name/bin/python" -c "$site")/below.pth"
    "$peers/$name/bin/python" -m pip install --quiet --disable-pip-version-check --no-compile "$@" &&
        "$peers/$name/bin/python" -m pip check >/dev/null ||
        stop "pip could not install $name"
}

programs
if current; then
    echo "peers: up to date in .peers/"
    exit 0
fi

"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null ||
    stop "$python is not a Python 3.11 or newer; name one: tests/peers/install.sh PYTHON"
"$python" -c 'import venv, ensurepip' 2>/dev/null ||
    stop "$python has no venv module (on Debian and Ubuntu: apt install python3-venv)"
command -v node >/dev/null || stop "node is missing; install Node.js 20 or newer"
command -v npm >/dev/null || stop "npm is missing; it comes with Node.js, or as a package named npm"
node -e 'process.exit(parseInt(process.versions.node) >= 20 ? 0 : 1)' ||
    stop "node is $(node --version); the peers need 20 or newer"

mkdir -p "$peers"
rm -f "$stamp"

python_peers() {
    # An environment whose Python is missing, or which is incomplete, is created again.
    "$peers/venv/bin/python" -m pip --version >/dev/null 2>&1 || "$python" -m venv --clear "$peers/venv"
    "$peers/venv/bin/python" -m pip install --quiet --disable-pip-version-check \
        --requirement "$here/requirements.txt" --constraint "$here/constraints.txt" ||
        stop "pip could not install the Python peers"

    # mcpspy and pytest with the Python SDK, like the environment of a user of the pytest plugin: with 2.x and with 1.x.
    layer mcp2 venv --constraint "$root/constraints.txt" --editable "$root" pytest pytest-asyncio pytest-xdist
    layer mcp1 mcp2 --requirement "$here/mcp1.txt"
    sdk_suite
}

# The Python SDK's own tests, which only its source distribution contains.
sdk_suite() {
    layer sdk venv --requirement "$here/sdk.txt"
    version=$("$peers/sdk/bin/python" -c 'from importlib.metadata import version; print(version("mcp"))')
    rm -rf "$peers/sdk/suite" && mkdir "$peers/sdk/suite" &&
        "$peers/sdk/bin/python" -m pip download --quiet --disable-pip-version-check --no-deps --no-binary mcp \
            --dest "$peers/sdk/suite" "mcp==$version" &&
        tar -xzf "$peers/sdk/suite/mcp-$version.tar.gz" -C "$peers/sdk/suite" --strip-components 1 ||
        stop "pip could not download the source distribution of the Python SDK"
}

# Arize Phoenix, to which the tests send spans.
phoenix() {
    "$python" -m venv --clear --without-pip "$peers/phoenix"
    "$python" -m pip --python "$peers/phoenix/bin/python" install --quiet --disable-pip-version-check \
        --requirement "$here/phoenix.txt" || stop "pip could not install Phoenix"
}

node_peers() {
    cp "$here/package.json" "$here/.npmrc" "$peers/"
    # Scripts are not needed: the only one (the Inspector's) does nothing outside its own checkout. npm also
    # warns that the Inspector requires Node 22; its command line works on 20.
    (cd "$peers" && npm install --no-package-lock --ignore-scripts --loglevel=error) ||
        stop "npm could not install the Node peers"

    # The browser that opens exported pages. On other systems, an installed one is used.
    if [ "$(uname -s) $(uname -m)" = "Linux x86_64" ]; then
        node "$here/chromium.mjs" "$peers/node_modules/@sparticuz/chromium" "$peers/chromium" ||
            stop "Chromium could not be unpacked"
    fi

    # A Node whose fetch() takes a proxy from the environment: the installed one may be older. It is outside the folder
    # in which the tests find the commands of the peers.
    npm install --prefix "$peers/node24" --no-package-lock --ignore-scripts --loglevel=error \
        "node-$(node -p 'process.platform + "-" + process.arch')@24.21.0" ||
        stop "npm could not install Node.js 24"
}

# All at once: each waits for its registry, or uses one core.
python_peers &
python_job=$!
node_peers &
node_job=$!
phoenix &
phoenix_job=$!
failed=
wait "$python_job" || failed=yes
wait "$node_job" || failed=yes
wait "$phoenix_job" || failed=yes
[ -z "$failed" ] || exit 1

touch "$stamp"
echo "peers: installed in .peers/"
