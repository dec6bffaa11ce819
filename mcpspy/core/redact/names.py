# ruff: noqa: RUF001 - Names of other languages have letters that look like Latin ones.
"""Names of secrets, their spellings, and the contexts of secrets without a name.

One table makes both the rules (`core.redact.patterns`, `core.redact.text`) and the literals of the
prefilter: what a rule recognises contains a literal of this module, in any case of letters.
Imports nothing, because each session builds the prefilter at its start.
"""

from __future__ import annotations

STRONG = """
    pass-word passwd pass-phrase secret api-key app-key access-key secret-key secret-access-key private-key
    signing-key encryption-key master-key account-key subscription-key shared-key auth-key deploy-key
    access-token refresh-token auth-token id-token bearer-token session-token api-token bot-token user-token
    client-secret credential authorization cookie
    secret-key-base secret-string secret-binary secret-text connection-string code-verifier
    device-code user-code authorization-code client-assertion pass-code otp-code mfa-code verification-code
    contrasena clave-secreta de-passe passwort kennwort wachtwoord senha haslo losenord sifre
    passord adgangskode salasana heslo jelszo
""".split()
"""Endings of names whose value is always secret; a hyphen marks where a spelling may have a separator."""

WEAK = ["token", "session-id"]
"""Endings of names whose value is secret if it looks random: `token` has other meanings too."""

FOREIGN = """
    contraseña Contraseña CONTRASEÑA hasło Hasło HASŁO lösenord Lösenord LÖSENORD şifre Şifre ŞİFRE
    пароль Пароль ПАРОЛЬ секрет Секрет СЕКРЕТ jelszó Jelszó JELSZÓ парола Парола סיסמה รหัสผ่าน पासवर्ड
    密码 密碼 密钥 パスワード 비밀번호 암호
""".split()
"""Like `STRONG`, as they are written: bytes have no upper and lower case beyond ASCII. The name ends there."""

SHORT = ["pass", "pwd", "auth", "otp", "totp", "dpop"]
"""Like `WEAK`, but only as a whole word, and before one of `ENDS`: they are parts of many words."""

QUERY = ["sig", "signature", "code", "key", "hmac", "jwt", "sas"]
"""Parameters of a query whose value is secret if it looks random; elsewhere these names mean anything."""

SUFFIXES = """confirmation confirm repeat value base64 b64 prod production staging live dev primary secondary""".split()
"""Words that may follow the name of a secret: `password_confirmation`. Digits may follow too: `password2`."""

SEPARATORS = ("", "_", "-", ".", " ", "__")
"""Between the words of a name: apiKey, api_key, api-key, api.key, API key, API__KEY."""

ENDS = "\"'`:=\\ \t\n]<>*|\x1b"
"""Characters that may follow the name of a secret in front of its sign."""

QUERY_STARTS = ("?", "&", "#", ";", "u0026")
"""Text in front of the name of a parameter; JSON may write `&` as an escape."""

CONTEXTS = (
    "identified ",
    "sshpass",
    "docker login",
    "redis-cli",
    "-user",
    " -u",
    "thin:",
    ":5432:",
    ":5433:",
    ":6432:",
    ":*:",
    'kty"',
    "kty\\",
    "kty'",
    "kty&",
    "signature=",
    "grant_type",
    "%40",
)
"""Parts of places in which a secret has no name: SQL, command lines, `.pgpass`, JDBC, JWK, AWS signatures, forms of
OAuth, the `@` of an encoded URL."""


FRAGMENTS = """
    pass pwd auth secret token redential ookie verifier _key -key .key ikey pkey skey tkey ekey gkey nkey rkey dkey hkey
    sig= ture= code= key= hmac= jwt= sas= dentified redis-cli -user thin: kty otp dpop ssertion
""".split()
FRAGMENTS += (" key", "er login")
"""Parts that many literals share: the prefilter searches these first."""


def spellings(name: str) -> list[str]:
    """Return a name of the table in lower case, with each separator between its words."""
    first, *words = name.split("-")
    found = [first]
    for word in words:
        found = [left + separator + word for left in found for separator in SEPARATORS]
    return found


def _escaped(name: str, backslash: str) -> str:
    """Return what JSON makes of a name, with escapes beyond ASCII; without the first backslash."""
    letters = (letter if letter < "\x80" else f"{backslash}u{ord(letter):04x}" for letter in name)
    return "".join(letters).removeprefix(backslash)


def _named() -> list[bytes]:
    """Return the fewest literals of which every name has one."""
    literals: list[str] = []
    for name in sorted((*STRONG, *WEAK), key=lambda name: name.count("-")):
        for whole in spellings(name):
            # `__` is rare, so that the word behind it is enough: fewer letters, and states of the search.
            spelled = whole[max(0, whole.rfind("__")) :]
            # A name with a blank is not found by a part of it: names in texts end at a blank.
            if " " in spelled or not any(literal in spelled for literal in literals):
                literals.append(spelled)
    literals += [name + end for name in SHORT for end in ENDS]
    return [literal.encode() for literal in literals]


FOREIGN_LITERALS = sorted({name.encode().lower() for name in FOREIGN})
"""Literals of the names beyond ASCII. `bytes.lower` keeps their other letters, as the search does."""

NAMED = _named()
"""Literals of the other names, in lower case."""

QUERIED = [f"{start}{name}=".encode() for start in QUERY_STARTS for name in QUERY]
"""Literals of parameters, in lower case."""

ESCAPED = sorted(
    {
        _escaped(part, "\\" * count).lower().encode()
        for parts, counts in (
            ("арол АРОЛ екре ЕКРЕ パスワ 비밀번 סיסמ รหัส पास", (1, 2)),
            ("ол ОЛ кр КР スワ 밀번 יס หั ास", (4, 8)),
            ("密码 密碼 密钥 암호 asł asŁ", (1, 2, 4, 8)),
            ("contrase senord şifr ŞİF jelsz", (1,)),
        )
        for part in parts.split()
        for count in counts
    }
)
"""Literals of parts of `FOREIGN` with escapes, in JSON and in JSON in a string: enough to read the message.

Each level of JSON in a string doubles the backslashes, and the walker reads four levels. Of the deeper ones, two letters
are enough: a longer literal would make the search larger at the start of every session, a shorter one only makes
mcpspy read more of the rare messages that have other letters beyond ASCII escaped so often."""

PLACED = [context.encode() for context in CONTEXTS]
"""Literals of contexts, in lower case."""
