"""Names of secrets, and harmless values."""

from __future__ import annotations

import pytest

from mcpspy.core.redact.patterns import NameVerdict, is_harmless, is_plural, is_random, looks_secret, verdict


@pytest.mark.parametrize(
    "name",
    """password Password DB_PASSWORD db-password dbPassword passwords client_secret clientSecret api_key apiKey API-KEY
    X-Api-Key apikey AWS_SECRET_ACCESS_KEY access_token refreshToken Authorization Proxy-Authorization Set-Cookie
    credentials private_key example.com/apiKey""".split(),
)
def test_this_is_the_name_of_a_secret(name: str) -> None:
    assert verdict(name.encode()) == NameVerdict.STRONG


@pytest.mark.parametrize("name", "token TOKEN GITHUB_TOKEN csrfToken pass".split())
def test_this_may_be_the_name_of_a_secret(name: str) -> None:
    assert verdict(name.encode()) == NameVerdict.WEAK


@pytest.mark.parametrize(
    "name",
    """progressToken nextPageToken page_token max_tokens tokens password_hint secretName api_key_id public_key key
    passenger keyboard author cursor""".split(),
)
def test_this_is_not_the_name_of_a_secret(name: str) -> None:
    assert verdict(name.encode()) == NameVerdict.NOTHING


@pytest.mark.parametrize(
    "value",
    [
        "", "null", "None", "true", "required", "$API_KEY", "${api_key}", "%API_KEY%", "{{ secrets.KEY }}", "<your key>",
        "process.env.API_KEY", "os.environ['X']", "your_key_here", "****", "xxxxxxxx", "[redacted:00c0ffee]",
        "Bearer [redacted:00c0ffee]", "include",
    ],
)  # fmt: skip
def test_this_value_is_harmless(value: str) -> None:
    assert is_harmless(value.encode())


@pytest.mark.parametrize(
    "value",
    ["x1", "swordfish", "$ecret", "yours3cret", "@dmin", "env123", "[redacted:00c0ffee]x", "nullable"],
)
def test_this_value_may_be_a_secret(value: str) -> None:
    assert not is_harmless(value.encode())


def test_a_token_is_distinguished_from_a_word() -> None:
    assert is_random(b"f00ba4f00ba4-1234")
    for word in (b"swordfish", b"12345678", b"two words 1", b"a1", b"aaaaaaaa1", b"f(x1)abcdef"):
        assert not is_random(word), word
    assert looks_secret(b"pass", b"trout")
    for path in (b"/bin/x", b"~/x", b"./x", b"C:\\x", b"two words"):
        assert not looks_secret(b"pass", path), path
    assert not looks_secret(b"token", b"The")


def test_a_plural_is_recognised() -> None:
    assert is_plural(b"secrets")
    assert not is_plural(b"secret")
