"""Look-alikes of secrets, generated with a seed: texts in which nothing may be redacted."""

from __future__ import annotations

import json
import random
import uuid
from base64 import b64encode
from hashlib import sha256
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

WORDS = """access account agent answer author branch bridge cache change channel client column commit compass config
context count cursor debug design detail engine error event expected field folder format function gateway handler
header index input issue keyboard label latest limit matching memory message method model module monkey number object
option output owner package parser passenger passing path pattern policy prompt query reader region release report
request resource result review router sample schema server session signal socket source status stream string summary
system table target template thread title toolkit topic trace turkey update user value version widget window worker""".split()

PROSE = """
The {w} password must be {n} characters or longer.|Tokens: {n} used, {n} left.|A secret {w} is kept by the {w}.
Use an API key per {w}; the key is shown once.|Authorization: see the {w} below.|Cookies are {w}; the cookie banner is off.
password: required, {w}: optional|The token "{w}" was expected before "{w}".|passed: {n}, failed: {n}, skipped: 0
Press any key to {w}.|credential helper: {w}|Sign in with your {w} password, then {w}.|author: {W} {W}|auth: {w}
identified by a {w}, the {w} is {w}|identified with the {w} {w}|basic {w} and bearer {w}|the {w} is identified as {w}
max_tokens={n}, temperature=0.7|token_count: {n}|password_policy: {w}|secret_name: {w}|key: {w}, value: {w}|code={n}
the secret of {w}: practice|A pass: {w} of {w}; see pass {n}.|compass: {w}|bypass = {w}|key = {w}|sort_key: {w}|primary_key = id
Reset password? Forgot password? Change password, {w}.|**Password:** at least {n} characters|**Token**: a {w} of a {w}
| Password | {w} |
| Option | Token | {w} |
- [ ] rotate the secret key of the {w}|--password is required by {w}|use --token to {w}|set --api-key or {w}
login {w} password reset|The password is not {w}.|Password (optional): none|secret: <your {w}>|see API keys → {w}
""".strip()

CODE = """
password = get_{w}()|const token = await {w}.token();|if (password === {w}) {{ {w}(); }}|def login(self, password: str, secret: str = None) -> {W}:
password: string;|apiKey?: string|private readonly secret: {W};|token = request.headers["Authorization"]|self.password = password
os.environ["API_KEY"]|process.env.{U}_TOKEN|config.get("password")|getenv("{U}_SECRET")|map.put("password", password)
<input type="password" name="password" placeholder="{W}">|<label for="password">Password</label>|<password/>|<token></token>
type Token = {w} / {w};|import {{ token }} from "./{w}"|from {w} import secret|fn key(&self) -> &Key|enum {{ PASSWORD, TOKEN }}
['password', '{w}', '{w}']|("token", "{w}")|{{"password", "{w}"}}|password={{{w}}}|token=${{{w}}}|API_KEY=${{{U}_API_KEY}}
assert token == {w}|tokens = {w}.split()|token: {w}.Token|key=lambda {w}: {w}.key|for key, value in {w}.items():
password = input("{W}: ")|secret := os.Getenv("{U}")|token := {w}.Next()|$password = $_POST['password'];|define('{U}', '{w}')
SELECT password FROM {w} WHERE token IS NOT NULL;|ALTER TABLE {w} ADD COLUMN password TEXT;|PRIMARY KEY (id)|"kty": one of EC, RSA, oct
env:\n- name: API_KEY\n  valueFrom:\n    secretKeyRef:\n      name: {w}|secretName: {w}|password_file: /run/secrets/{w}|passwordSecretRef: {w}
""".strip()

URLS = """
https://{w}.example/{w}?page={n}&code=en&key={w}|https://{w}.example/oauth/token?state={w}|https://{w}.example:8080/@{w}/{w}@{n}
https://unpkg.com/@{w}/{w}@{n}.0.1/dist|git@github.com:{w}/{w}.git|ssh://git@github.com/{w}/{w}|https://{w}.example/?sig={w}&token={w}
postgres://{w}@localhost:5432/{w}|postgres://localhost:5432/{w}|redis://localhost:6379/0|mailto:{w}@{w}.example|{w}.py:5432:{w}
127.0.0.1:5432:5432|curl -u https://{w}.example|curl -s https://{w}.example -o {w}|docker run -p 8080:80 {w}|sshpass is not installed
https://{w}.example/reset-password/{w}?next_page_token={n}|file:///home/ada/secrets/{w}.txt|mongodb://{w}.example/{w}?authSource=admin
jdbc:postgresql://{w}.example/{w}|jdbc:oracle:thin:@{w}.example:1521/{w}|//{w}.example/:_authToken=${{NPM_TOKEN}}
""".strip()


def texts(seed: int = 21) -> Iterator[str]:
    """Yield texts without secrets: prose, program code, addresses, and random identifiers."""
    made = random.Random(seed)

    def filled(text: str) -> str:
        while "{" in text.replace("{{", "").replace("}}", "") and any(
            m in text for m in ("{w}", "{W}", "{U}", "{n}")
        ):
            for mark, value in (
                ("{w}", made.choice(WORDS)),
                ("{W}", made.choice(WORDS).title()),
                ("{U}", made.choice(WORDS).upper()),
                ("{n}", str(made.randrange(4, 4096))),
            ):
                text = text.replace(mark, value, 1)
        return text.replace("{{", "{").replace("}}", "}")

    tables = [line for line in PROSE.splitlines() if line.startswith("| ")]
    lines = [line for line in PROSE.splitlines() if not line.startswith("| ")]
    lines += [*CODE.splitlines(), *URLS.splitlines()]
    patterns = [*tables, *(part.replace("\\n", "\n") for line in lines for part in line.split("|"))]
    for pattern in patterns:
        for _ in range(3):
            yield filled(pattern)
    for number in range(12):
        noise = made.randbytes(48)
        digest = sha256(noise).hexdigest()
        yield f"commit {digest[:40]} of {uuid.UUID(bytes=noise[:16])}"
        yield f"sha512-{b64encode(noise).decode()} integrity"
        yield f'etag: W/"{digest[:20]}", session={uuid.UUID(bytes=noise[:16])}, request_id={digest[:24]}'
        yield f"data:image/png;base64,{b64encode(noise * 3).decode()}"
        yield f'{{"page_token": "{digest[:16]}", "nextPageToken": "{digest[:20]}", "key_id": "{digest[:8]}"}}'
        yield f"{made.choice(WORDS)}-{number}.example.com:{made.randrange(1024, 65535)}/{digest[:12]}"


def messages(text: str) -> Iterator[bytes]:
    """Yield messages with a text: as it is, and as the value of a key."""
    yield json.dumps({"result": {"content": [{"type": "text", "text": text}]}}).encode()
    yield json.dumps({"result": {"structuredContent": {"text": text, "lines": [text]}}}, indent=1).encode()
