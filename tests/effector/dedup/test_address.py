"""URLs: what is ours is taken out, and no credentials are ever shown."""

from __future__ import annotations

import random
import string
from urllib.parse import quote

import pytest

from intentlog.effector.dedup import DedupError, InvalidDedupUrl, open_dedup
from intentlog.effector.dedup.address import masked, parse_server

SECRET = "hunter2"
URLS = [
    f"postgresql://ann:{SECRET}@db:5432/effects",
    f"postgresql://ann:{SECRET}@db/effects?sslmode=require",
    f"postgresql://db/effects?user=ann&password={SECRET}",
    f"postgresql://db/effects?sslpassword={SECRET}",
    f"postgresql://ann:{SECRET}@one:1,two:2/effects",
    f"postgresql://ann:p@{SECRET}@db/effects",
    f"postgresql://ann:a/{SECRET}@db/effects",
    f"postgresql://ann:#{SECRET}?@db/effects",
    f"redis://:{SECRET}@cache:6379/0",
    f"redis://{SECRET}@cache:6379/0",
    f"redis://:{SECRET}",
    f"redis://ann:{SECRET}",
    f"rediss://cache/0?password={SECRET}",
    f"ann:{SECRET}@db",
    f"host=db password={SECRET}",
]


@pytest.mark.parametrize("url", URLS)
def test_a_shown_url_holds_no_secret(url: str) -> None:
    assert SECRET not in masked(url)
    assert SECRET not in repr(parse_server(url))


def test_no_error_holds_the_password_whatever_it_is_made_of() -> None:
    made = random.Random(7)
    characters = string.digits + string.ascii_letters + string.punctuation + " " + "@:/?#&=%[] '\"" * 4
    for _ in range(100):
        password = "".join(made.choices(characters, k=made.randint(4, 20)))
        for form in ("postgresql://ann:{}@127.0.0.1:1/effects", "redis://:{}@127.0.0.1:1/0", "redis://ann:{}@127.0.0.1:none/0", "nosql://ann:{}@db"):
            for text in (password, quote(password, safe="")):
                with pytest.raises(DedupError) as refusal:
                    open_dedup(form.format(text))
                assert password not in f"{refusal.value} {refusal.value!r}", form.format(text)


def test_a_parameter_that_redis_does_not_know_is_a_bad_url() -> None:
    with pytest.raises(InvalidDedupUrl, match="redis-py cannot read"):
        open_dedup(f"redis://:{SECRET}@127.0.0.1:1/0?nonsense=1")


def test_a_shown_url_still_says_where() -> None:
    assert "postgresql://ann:***@db:5432/effects" == masked(URLS[0])
    assert "redis://cache:6379/0" == masked("redis://cache:6379/0")
    assert "redis://[::1]:6379/0" == masked("redis://[::1]:6379/0")
    assert "sqlite:////tmp/a.db" == masked("sqlite:////tmp/a.db")


def test_our_parameters_are_taken_out_and_the_others_left_as_they_are() -> None:
    parsed = parse_server("postgresql://db/x?sslmode=require&namespace=staging&options=-c%20a%3Db&patience_ms=250")
    assert ("postgresql://db/x?sslmode=require&options=-c%20a%3Db", "staging", 0.25) == (parsed.url, parsed.namespace, parsed.patience)
    plain = parse_server("redis://cache/0")
    assert ("redis://cache/0", "", 10.0) == (plain.url, plain.namespace, plain.patience)


@pytest.mark.parametrize("part", ["namespace=", "namespace=A", "namespace=a-b", "namespace=" + "x" * 41, "patience_ms=", "patience_ms=1.5", "patience_ms=-1"])
def test_a_parameter_that_means_nothing_is_named(part: str) -> None:
    with pytest.raises(InvalidDedupUrl) as refusal:
        parse_server(f"redis://:{SECRET}@cache/0?{part}")
    assert part.partition("=")[0] in str(refusal.value)
    assert SECRET not in str(refusal.value)
