"""Errors outside the protocol, and the words by which programs name them: settings, files, network."""

from __future__ import annotations

import re
from functools import lru_cache

from mcpspy.analysis.explain.causes.definition import Trouble
from mcpspy.analysis.explain.causes.start_troubles import START_TROUBLES

_NO_SCREEN = (
    r"without having a x ?server running|missing x server|cannot open display|unable to open x display"
)
_IN_USE = (
    r"browser is already (?:in use|running) for|opening in existing browser session|user data director(?:y|ies) .{0,60}already in use"
    r"|SingletonLock|ProcessSingleton"
)
"""A browser that another program has, with the folder of its profile."""

TROUBLES = (
    *START_TROUBLES,
    Trouble(
        "port-in-use",
        "a port that the server needs is in use",
        next_step="end the other copy of the server, or the other program that has the port, or set "
        "another port; it may be this server itself that has it, if it listens twice",
        named_by="The system refuses to listen: EADDRINUSE on POSIX, `Only one usage of each socket "
        "address` on Windows.",
        signs=r"EADDRINUSE|address already in use|Only one usage of each socket address|\bport \d+ (?:is|was) already in use|\bport \d+ is in use|port is already allocated"
        r"|\bno (?:available|free) ports? (?:in|between|from)\b",
        errors=("Error: listen EADDRINUSE: address already in use :::3001",),
        side="",
    ),
    Trouble(
        "text-encoding",
        "the server reads or writes text in another encoding than UTF-8",
        next_step="set PYTHONUTF8=1 by env in the host's configuration, or let the server open its streams "
        "and files as UTF-8",
        named_by="Python's codecs (`charmap` is a code page of Windows), Ruby and Rust name the bytes or "
        "characters that they cannot read or write.",
        signs=r"Unicode(?:Encode|Decode)Error|codec can't (?:en|de)code|'charmap'|illegal multibyte"
        r"|invalid (?:utf-8|byte sequence)|stream did not contain valid UTF-8|from ASCII-8BIT to UTF-8|Encoding::\w+Error",
        side="server",
        errors=("UnicodeDecodeError: 'charmap' codec can't decode byte 0x81 in position 4",),
    ),
    Trouble(
        "disk-full",
        "the disk is full",
        next_step="make room on the disk that the error names",
        named_by="The system refuses to write: ENOSPC, or EDQUOT of a quota.",
        signs=r"\bENOSPC\b(?!.{0,40}watchers)|no space left on device|not enough space on the disk|disk (?:is )?full|disk quota exceeded|EDQUOT",
        errors=("OSError: [Errno 28] No space left on device",),
    ),
    Trouble(
        "out-of-memory",
        "the server has no memory left",
        next_step="give it more memory (node: --max-old-space-size), or let it process less at once",
        named_by="V8 reports its heap limit, Python MemoryError, the JVM OutOfMemoryError, the system ENOMEM.",
        signs=r"heap out of memory|\bOOM\b(?! command not allowed)|MemoryError|OutOfMemoryError|cannot allocate memory|\bENOMEM\b"
        r"|unable to allocate [\d.]+ [KMGT]iB|allowed memory size of \d+ bytes exhausted|memory allocation of \d+ bytes failed|runtime: out of memory"
        r"|NoMemoryError",
        errors=("FATAL ERROR: Reached heap limit Allocation failed - JavaScript heap out of memory",),
        side="",
    ),
    Trouble(
        "too-many-files",
        "the server has too many open files, or watches too many",
        next_step=(
            (
                "watchers",
                "raise the limit of the system (Linux: sysctl fs.inotify.max_user_watches), or let the server watch fewer files",
            ),
            ("", "close what is opened, or raise the limit (ulimit -n)"),
        ),
        named_by="The system refuses to open another one (EMFILE), or to watch one (ENOSPC of inotify).",
        signs=r"\bEMFILE\b|too many open files|limit for number of file watchers",
        errors=("Error: EMFILE: too many open files",),
        side="",
    ),
    Trouble(
        "name-not-resolved",
        "a host name could not be resolved",
        next_step="check the host name in the server's settings, the network and its DNS; in a container, "
        "names of other containers exist only in the same network",
        named_by="The resolver's errors as libuv (ENOTFOUND), glibc, macOS, Go, curl, urllib3 and Java "
        "write them.",
        signs=r"\bENOTFOUND\b|EAI_AGAIN|getaddrinfo|name or service not known"
        r"|temporary failure in name resolution"
        r"|nodename nor servname|no such host|NameResolutionError|could not resolve host|UnknownHostException|non-existing domain|\bnxdomain\b",
        errors=("Error: getaddrinfo ENOTFOUND api.weather.example",),
        side="",
    ),
    Trouble(
        "tls-failure",
        "a TLS connection could not be made",
        next_step=(
            (
                r"unsupported protocol|no protocols available|handshake failure|version too low|alert protocol version",
                (
                    "the two sides have no version of TLS in common: update the older one, or allow its version in the settings of the other"
                ),
            ),
            (
                "",
                (
                    "trust the CA (NODE_EXTRA_CA_CERTS, SSL_CERT_FILE), or correct the host name; the proxy of a company has its own CA"
                ),
            ),
        ),
        named_by="OpenSSL (Python, Node.js), Go (x509), Java (PKIX) and rustls name what is wrong with "
        "the certificate.",
        signs=r"certificate verif(?:y|ication) failed|self[- ]signed certificate|unable to (?:get"
        r"|verify).{0,30}certificate|CERT_HAS_EXPIRED"
        r"|ERR_TLS_CERT|hostname mismatch|SSLError|ssl\.SSL|tls: failed to verify|x509: "
        r"|PKIX path building|DEPTH_ZERO_SELF_SIGNED"
        r"|UNABLE_TO_VERIFY_LEAF|wrong version number|UnknownIssuer|invalid peer certificate|SSL connection could not be established|certificate for this server is invalid|certificate verify failed|unknown_ca"
        r"|remote certificate (?:is invalid|was rejected)|SSL connection error|SSL routines:",
        errors=(
            "ssl.SSLCertVerificationError: certificate verify failed: unable to get local issuer certificate",
        ),
        side="",
    ),
    Trouble(
        "proxy-refused",
        "a proxy between the server and the network refused the connection",
        next_step="set HTTPS_PROXY and NO_PROXY in env of the host's configuration: hosts pass only few "
        "variables on",
        named_by="requests, urllib3 and tunnel agents of Node.js report the 407 of the proxy, or the "
        "CONNECT that failed.",
        signs=r"\b407\b.{0,40}proxy|proxy authentication required|ProxyError"
        r"|tunneling socket could not be established|Tunnel connection failed|proxy response \(\d+\) !== 200|proxy tunnel request to proxy|unable to tunnel through proxy",
        errors=(
            "requests.exceptions.ProxyError: Tunnel connection failed: 407 Proxy Authentication Required",
        ),
        side="",
    ),
    Trouble(
        "rate-limited",
        "another service limits the rate of requests",
        next_step="wait for the time that it names, send fewer requests, or use a key with a higher limit",
        named_by="The status 429 in the words of HTTP clients, or RESOURCE_EXHAUSTED of gRPC.",
        signs=r"\brate[ -]?limit|\btoo many requests\b|\b(?:status|http|code|error)\b\W{0,12}429\b"
        r"|\b429\b\W{0,3}(?:client error|error)"
        r"|quota (?:has been )?exceeded|exceeded your.{0,20}quota|RESOURCE_EXHAUSTED|throttl",
        errors=("Error: Request failed with status code 429",),
        side="",
    ),
    Trouble(
        "service-refused-key",
        "another service refused the server's credentials",
        next_step=(
            (
                r"(?:access denied|login failed|authentication failed) for user|ORA-01017",
                (
                    "set the user and the password of the database by env in the host's configuration, and check that this user may log in from "
                    "this machine"
                ),
            ),
            ("", "set a valid key or token for the service by env in the host's configuration"),
        ),
        named_by="The status 401 or 403 in the words of HTTP clients, an error of OAuth, or AWS "
        "(InvalidClientTokenId, ExpiredToken).",
        signs=r"""(?x)\b(?:status|http|code|error)\b(?:\s+status)?(?:\s+code)?\W{0,6}40[13]\b
        |\b40[13]\b\W{0,3}(?:client\ error|unauthori[sz]ed|forbidden)
        |(?:invalid|incorrect|bad|revoked|malformed|expired)\ (?:[\w-]+\ ){0,2}api[ _-]?key\b
        |(?:invalid|incorrect|bad|revoked|malformed|expired)\ (?:api[ _-]?key|access[ _-]?token
        |auth\w*[ _-]?token|token(?!\W{0,3}(?:line|at|in|near|position|column)\b|\W{0,2}['"`<])|credentials)\b|bad\ credentials
        |(?:api[ _-]?key|token|credentials?)\ (?:is\ |are\ |has\ |have\ |was\ |were\ )?(?:been\ )?(?:invalid
        |expired|revoked|rejected|incorrect|not\ valid)
        |(?:jwt|token|session)\ (?:has\ )?expired|authentication\ (?:failed|required)|not\ authenticated
        |(?:access\ denied|login\ failed)\ for\ user|ORA-01017
        |permission\ denied\ \(publickey|not\ accessible\ by\ (?:personal\ access\ token|integration)|invalid_grant|InvalidClientTokenId|ExpiredToken|unauthori[sz]ed\b""",
        side="",
        errors=("Error: Invalid API key provided",),
    ),
    Trouble(
        "argument-unknown",
        "the program does not know an argument of its command line",
        next_step="correct args in the host's configuration: remove this argument (the name of the package given twice, "
        "an option of another version); the program's --help lists what it knows",
        named_by="The parsers of command lines: argparse, click, typer, commander, yargs, cobra, Go's flag, clap.",
        signs=r"unexpected (?:extra )?argument|unrecognized (?:arguments?|options?)|unknown (?:arguments?|options?"
        r"|flags?|command)\b|no such (?:option|command)|flag provided but not defined|found argument .{1,60} which"
        r"|too many arguments|unknown shorthand flag|^(?!.*sh: ).*(?:invalid|illegal) option\b|OptionParser::|UnrecognizedOptionException"
        r"|unrecognized command or argument|option does not exist|unknown switch",
        side="configuration",
        only_at_start=True,
        errors=(
            "Error: Got unexpected extra argument (weather-mcp)",
            "weather-mcp: error: unrecognized arguments: --stdio",
            "error: unknown option '--transport'",
        ),
    ),
    Trouble(
        "setting-surplus",
        "the server refuses a variable that it does not know",
        next_step="look for a .env file in the folder in which the host starts the server, which may be your project: start it in "
        "another folder (cwd), or take the variable out; the server should ignore what it does not know (pydantic: extra='ignore')",
        named_by="The settings of pydantic, which read a .env file of the current folder.",
        signs=r"validation errors? for \w*(?:settings|config|env)\b[\s\S]{0,300}(?:extra (?:inputs|fields) (?:are )?not permitted|extra_forbidden)",
        side="",
        errors=(
            "pydantic_core.ValidationError: 2 validation errors for Settings clickhouse_host Extra inputs are not permitted",
        ),
    ),
    Trouble(
        "setting-missing",
        "a setting that the server needs is missing",
        next_step="set it by env or args in the host's configuration: hosts pass only few variables of "
        "your shell on",
        named_by="A name in capitals that Python (KeyError) or the program itself reports as missing, the "
        "usage of a command-line parser, a field of pydantic, or the SDKs of clouds.",
        signs=r"""(?x)(?:environment\ variable|env(?:ironment)?\ var|api[ _-]?key|access[ _-]?token|token
        |secret|password|credentials?|settings?|config(?:uration)?|connection\ string
        |(?-i:[A-Z][A-Z0-9]+_[A-Z0-9_]+)|--[\w-]+)\b.{0,60}
        \b(?:(?<!could\ )not\ (?:set|found|provided|configured|defined|specified|given)|is\ required|are\ required
        |must\ be\ (?:set|provided|specified)|missing|undefined|is\ empty|required\b)
        |(?:missing|required|provide|set(?!\ lock)|specify)\b.{0,40}\b(?:environment\ variable|env\ var|api[ _-]?key
        |access[ _-]?token|token|credentials|config\w*|(?-i:[A-Z][A-Z0-9]+_[A-Z0-9_]+)\b)
        |could\ not\ resolve\ placeholder\ '\w|\bno\ (?:[\w-]+\ )?api[ _-]?key\ (?:found|provided|set|configured|given)
        |(?-i:KeyError:\ '[A-Z][A-Z0-9_]+')|following\ arguments\ are\ required|^usage:\ .*|required\ option
        |(?-i:\b[A-Z][A-Z0-9_]+:\ (?:unbound\ variable|parameter\ (?:not\ set|null)))
        |(?-i:VarError|\bNotPresent\b)|Field\ required|NoCredentialsError|Unable\ to\ locate\ credentials|could\ not\ (?:find
        |load)\ (?:the\ )?default\ credentials""",
        side="configuration",
        errors=(
            "KeyError: 'WEATHER_API_KEY'",
            "Error: Missing required environment variable: DATABASE_URL",
            "server: error: the following arguments are required: --api-key",
            "start.sh: line 22: HOME: unbound variable",
        ),
    ),
    Trouble(
        "program-not-started",
        "another program that the server starts is not installed, or could not be started",
        next_step=(
            (
                r"x ?server|\$?DISPLAY\b",
                (
                    "the machine of the server has no screen: start the browser without a window (an option such as --headless in args), or "
                    "give it a screen (xvfb-run)"
                ),
            ),
            (
                _IN_USE,
                (
                    "close the browser that has this profile, and what is left of another copy of the server; or give each copy its own profile "
                    "(an option such as --isolated or --user-data-dir in args)"
                ),
            ),
            (
                r"playwright|ms-playwright",
                "install the browser of this version, for the user that starts the server: npx playwright install (Python: playwright install)",
            ),
            (
                r"chrom(?:e|ium)|browser",
                "install the browser, or name its path in the server's settings (npx puppeteer browsers install chrome)",
            ),
            (
                "",
                (
                    "install this program where the server runs, and add its folder to PATH by env in the host's configuration: a "
                    "host that is started from the desktop has another PATH than a shell"
                ),
            ),
        ),
        named_by="Node.js (spawn … ENOENT), Python and Go for a name without a folder; Playwright, Puppeteer and "
        "Chromium about their browser, its screen and the folder of its profile.",
        signs=r"\bspawn [\w.-]+ ENOENT|\bCmd\('[\w.-]+'\) not found|executable doesn't exist at|could not find (?:chrome|chromium|browser)\b|distribution '\w+' is not found at"
        r"|Looks like Playwright|trying to start process '\w|Cannot run program \"|is not installed or it's not in your PATH|exec: \"[\w.-]+\": executable file not found"
        r"|no such file or directory: '(?:npx|uvx|uv|node|git|gh|ffmpeg|docker|python3?|bash|java|adb|tesseract|pandoc)'"
        rf"|{_NO_SCREEN}|{_IN_USE}",
        errors=(
            "browserType.launch: Executable doesn't exist at /home/ada/.cache/ms-playwright/chromium-1/chrome",
            "Error: Looks like you launched a headed browser without having a XServer running.",
            "Error: Browser is already in use for /home/ada/.cache/ms-playwright/mcp-chrome, use --isolated to run multiple instances",
        ),
        side="",
    ),
    Trouble(
        "container-socket-denied",
        "the command may not use the daemon of the containers",
        next_step="give the user of the host access to the socket (group docker), or mount it into the container in which "
        "the host runs; rootless engines have their own socket (DOCKER_HOST)",
        named_by="The client of docker or podman names the socket of its daemon.",
        signs=r"docker_engine.{0,40}access is denied|permission denied .{0,80}(?:docker (?:daemon|API)|docker\.sock|podman\.sock)"
        r"|(?:docker|podman)\.sock.{0,80}permission denied",
        side="",
        errors=(
            "permission denied while trying to connect to the Docker daemon socket at unix:///var/run/docker.sock",
        ),
    ),
    Trouble(
        "service-unreachable",
        "another program that the server needs cannot be reached",
        next_step=(
            (
                r"registry\.npmjs|(?:files\.pythonhosted|pypi)\.org|npm (?:error|ERR!) network",
                (
                    "check the network of the machine: the registry of packages was not reached; behind a proxy set HTTPS_PROXY by env in the "
                    "host's configuration, or install the package beforehand"
                ),
            ),
            (
                "",
                (
                    "start it, and check its host and port in the server's settings; in a container, "
                    "localhost is the container itself"
                ),
            ),
        ),
        named_by="The system's errors of connections (ECONNREFUSED, ETIMEDOUT, EHOSTUNREACH …), as "
        "runtimes and clients write them.",
        signs=r"ECONNREFUSED|connection refused|ConnectError|could not connect to|can(?:no|')t connect to"
        r"|failed to connect|Connection reset by peer|ECONNRESET"
        r"|EHOSTUNREACH|ENETUNREACH|network is unreachable|no route to host|actively refused"
        r"|docker daemon|ETIMEDOUT|ConnectTimeout|connect timeout",
        errors=("Error: connect ECONNREFUSED 127.0.0.1:5432",),
        side="",
    ),
    Trouble(
        "path-not-allowed",
        "a path is outside of the folders that the server may use",
        next_step="add the folder to those that the server may use: on its command line, or as a root of "
        "the client, whose roots take the place of the command line",
        named_by="The filesystem server of modelcontextprotocol/servers and servers like it name the "
        "folders that they allow.",
        signs=r"outside (?:of )?(?:the )?allowed (?:director|folder|path|root|repo)|path not allowed|must be within one of|not (?:in|within"
        r"|under) (?:the |an? )?(?:allowed|permitted|workspace)",
        side="",
        errors=("Error: Access denied - path outside allowed directories: /a/b not in /srv",),
    ),
    Trouble(
        "read-only-folder",
        "the server writes to a folder that is read-only",
        next_step="start the server in a folder that it may write to (cwd in the host's configuration): desktop hosts "
        "start servers in /; or let it write to an absolute path, such as a cache folder",
        named_by="EROFS in the words of Python, Node.js and Go.",
        signs=r"read-only file system|\bEROFS\b",
        errors=("OSError: [Errno 30] Read-only file system: 'logs'",),
        side="",
    ),
    Trouble(
        "permission-denied",
        "the server may not use a file or another resource",
        next_step=(
            (
                r"exec format error|ENOEXEC",
                "the program is built for another processor or system: use a build for this one (of an image: docker run --platform)",
            ),
            (
                r"node_modules[/\\]\.bin",
                (
                    "the package was published without the right to execute its program, or lost it in the cache: empty the cache of the "
                    "runner (npx: rm -rf ~/.npm/_npx); if the error comes again, use the version before, and tell its author"
                ),
            ),
            (
                r"\bspawn\b|\bexec\b|interpreter|: permission denied$",
                "make the file executable (chmod +x), or start it with its interpreter",
            ),
            (
                r"/nonexistent",
                (
                    "the user that starts the server has no home folder, or the host does not pass HOME on: set HOME by env in the host's "
                    "configuration to a folder that this user may write to"
                ),
            ),
            ("", "give the user that starts the server access to it, or set another path"),
        ),
        named_by="The system refuses access: EACCES, EPERM, or `Access is denied` on Windows.",
        signs=r"\bEACCES\b|\bEPERM\b|PermissionError|permission denied|operation not permitted"
        r"|access is denied|AccessDeniedException|UnauthorizedAccessException|access to the path '.{1,200}' is denied|not authorized to send apple events"
        r"|exec format error|ENOEXEC|bad interpreter|not executable",
        errors=(
            "PermissionError: [Errno 13] Permission denied: '/data/a.db'",
            "Error: spawn ./server EACCES",
        ),
        side="",
    ),
    Trouble(
        "file-missing",
        "a file or folder that the server needs does not exist",
        next_step="use absolute paths: a host starts servers in its own working directory",
        named_by="The system's ENOENT in the words of Python, Node.js, Java, Ruby, .NET and Windows.",
        signs=r"can't open file|\bENOENT\b|no such file or directory|FileNotFoundError|NoSuchFileException"
        r"|cannot find module '?[/\\.]|The system cannot find the"
        r"|unable to access jarfile|cannot load such file -- /|could not find a part of the path"
        r"|(?:file|directory|path|folder) (?:does not exist|not found)|can't cd to"
        r"|could not (?:find|open|read) (?:the )?(?:\w+ )?file|unable to open database file",
        side="configuration",
        errors=(
            "FileNotFoundError: [Errno 2] No such file or directory: '/data/a.json'",
            "python3: can't open file '/srv/server.py': [Errno 2] No such file or directory",
        ),
    ),
)
"""The first row whose words an error has is its trouble."""


@lru_cache(maxsize=1024)  # Each cause of a trouble asks for the same errors.
def trouble_of(text: str, *, at_start: bool) -> Trouble | None:
    """Return the kind of the trouble that an error names."""
    for each in TROUBLES:
        signs = each.signs if at_start or not each.only_at_start else each.later
        if signs and re.search(signs, text, re.IGNORECASE):
            return each
    return None
