"""Where a webhook may be, and that nothing of its URL but scheme and host is ever shown."""

from __future__ import annotations

import pytest

from intentlog.effector.approvals import InvalidWebhookUrl, is_webhook, parse_webhook


def test_a_url_is_taken_apart_and_shown_without_its_secrets():
    found = parse_webhook("webhook+https://ann:p%40ss@chat.example:8443/hooks/s3cr3t?token=t0k3n#answer=https://ops.example/answers?to=me")
    assert "https://chat.example:8443/hooks/s3cr3t?token=t0k3n" == found.url
    assert (("ann", "p@ss"), "https://ops.example/answers?to=me") == (found.auth, found.answer_url)
    assert "webhook+https://chat.example:8443/…" == found.shown
    assert not any(secret in repr(found) for secret in ("p@ss", "s3cr3t", "t0k3n", "ops.example"))


@pytest.mark.parametrize("host", ["127.0.0.1:8080", "localhost", "[::1]:8080", "127.8.8.8"])
def test_this_machine_is_spoken_to_without_tls(host):
    assert parse_webhook(f"webhook+http://{host}/x").url == f"http://{host}/x"


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("webhook+http://chat.example/s3cr3t", "over the network in the open"),
        ("webhook+http://10.0.0.1/s3cr3t", "over the network in the open"),
        ("webhook+ftp://chat.example/s3cr3t", "it must be webhook.https://HOST/PATH"),
        ("https://chat.example/s3cr3t", "write webhook.https:// instead of https://"),
        ("HTTP://localhost/s3cr3t", "write webhook.http:// instead of http://"),
        ("webhook+https:///s3cr3t", "it must be webhook.https://HOST/PATH"),
        ("webhook+https://chat.example:port/s3cr3t", "cannot be read"),
        ("webhook+https://[::1/s3cr3t", "cannot be read"),
        ("webhook+https://chat.example/s3cr3t é", "percent-encoded"),
        ("webhook+https://chat.example/x#s3cr3t", "answer=https://"),
        ("webhook+https://chat.example/x#answer=s3cr3t", "answer=https://"),
    ],
)
def test_what_is_no_webhook_is_refused_without_showing_it(url, said):
    with pytest.raises(InvalidWebhookUrl, match=said) as refused:
        parse_webhook(url)
    assert "s3cr3t" not in str(refused.value)


def test_other_urls_do_not_mean_to_be_one():
    assert [False, False, True, True] == [is_webhook(url) for url in ("eventlog:", "kafka://b/t", "webhook+http://x", "WEBHOOK+HTTPS://x")]
