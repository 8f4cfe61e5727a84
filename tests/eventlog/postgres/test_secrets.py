"""A password is shown to nobody, whatever characters it is made of and however wrong its URL is."""

from __future__ import annotations

import random
import string
from urllib.parse import quote

import pytest

from intentlog.eventlog.errors import InvalidUrl, LogError
from intentlog.eventlog.opening import open_log
from intentlog.eventlog.postgres.address import parse_address
from intentlog.eventlog.postgres.faults import translated, unreachable
from tests.cli.conftest import call

PRINTABLE = string.digits + string.ascii_letters + string.punctuation + " "
FORMS = (
    "postgresql://me:{}@127.0.0.1:1/log",
    "postgresql://me:{}@127.0.0.1:1/log?nonsense=1",
    "postgresql://me:{}@127.0.0.1:none/log",
    "postgresql://me:{}@127.0.0.1:1/log?schema=Big&application_name=x@y",
    "postgres://:{}@127.0.0.1:1/log",
    "mysql://me:{}@127.0.0.1:1/log",
)


def passwords(count: int) -> list[str]:
    """The same ones every time; at least one character in three is one that a URL gives a meaning to."""
    made = random.Random(7)
    return ["".join(made.choices(PRINTABLE + "@:/?#&=%[] '\"" * 4, k=made.randint(4, 20))) for _ in range(count)]


def urls(password: str) -> list[str]:
    encoded = quote(password, safe="")
    return [form.format(text) for form in FORMS for text in (password, encoded)] + [
        f"postgresql://127.0.0.1:1/log?user=me&password={encoded}&connect_timeout=2"
    ]


def told(url: str) -> str:
    """Everything that is said when the URL is used."""
    with pytest.raises(LogError) as refused:
        open_log(url)
    said = f"{refused.value} {refused.value!r}"
    try:
        address = parse_address(url)
    except InvalidUrl as error:
        return f"{said} {error}"
    return f"{said} {address!r} {address.shown}"


def test_no_error_and_no_shown_url_holds_the_password():
    for password in passwords(150):
        for url in urls(password):
            said = told(url)
            assert password not in said, url
            assert quote(password, safe="") == password or quote(password, safe="") not in said, url


def test_no_command_prints_the_password():
    for password in passwords(15):
        for url in urls(password):
            for command in ("init", "streams"):
                done = call(command, "--log", url)
                assert done.exit_code in (2, 3), url
                assert password not in done.output + done.stderr, url


def test_what_libpq_says_is_shown_without_the_password():
    address = parse_address("postgresql://me:it%27s+secret@db/log?sslpassword=other1234")
    for secret in ("it's+secret", "it%27s+secret", "other1234"):
        for error in (unreachable(address, OSError(f'no host "{secret}"')), translated(OSError(f"near {secret}"), address)):
            assert secret not in str(error)
            assert "***" in str(error)


@pytest.mark.parametrize("port", ["notaport", "0", "65536"])
def test_a_port_that_is_none_is_a_bad_url(port):
    for url in (f"postgresql://me@db:{port}/log", f"postgresql://db/log?port={port}"):
        with pytest.raises(InvalidUrl, match="port"):
            parse_address(url)
    assert 2 == call("streams", "--log", f"postgresql://me@db:{port}/log").exit_code


def test_passwords_of_unusual_characters_that_a_url_can_hold_still_reach_the_server():
    for password in ("a'b\"c", "a:b", "a#b", "[a]", "a=b&c"):
        assert password == parse_address(f"postgresql://me:{password}@db/log").server["password"]
