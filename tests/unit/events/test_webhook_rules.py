"""Webhooks: signatures, secrets, pauses, and which addresses are refused."""

from __future__ import annotations

import json
from base64 import b64encode
from datetime import UTC, datetime, timedelta
from random import Random

import pytest

from memory_app.client import InvalidSignature, verify_webhook
from memory_app.errors import Conflict, InvalidInput
from memory_app.events.webhooks.address import Rules, Target, check_reachable, read_url
from memory_app.events.webhooks.ip_rules import is_allowed
from memory_app.events.webhooks.pause import is_given_up, pause_seconds
from memory_app.events.webhooks.secret import Keyring
from memory_app.events.webhooks.signature import sign, text_of

PUBLIC = Rules()
PRIVATE = Rules(allow_private=True)
NOW = datetime(2026, 11, 30, tzinfo=UTC)

# --- signatures ---------------------------------------------------------------------------------------------

SECRET = b"0123456789abcdef0123456789abcdef"
BODY = b'{"type":"ping"}'


def headers(*secrets: bytes, timestamp: int = 1_000) -> dict[str, str]:
    signature = sign(secrets or (SECRET,), id="msg_1", timestamp=timestamp, body=BODY)
    return {"Webhook-Id": "msg_1", "Webhook-Timestamp": str(timestamp), "Webhook-Signature": signature}


def test_a_signature_is_that_of_the_convention() -> None:
    # The example of the Standard Webhooks specification's libraries.
    secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
    body = b'{"test": 2432232314}'
    sent = {
        "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
        "webhook-timestamp": "1614265330",
        "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    }
    assert verify_webhook(sent, body, secret, now=1_614_265_330) == {"test": 2432232314}


def test_a_message_is_verified_with_its_secret_only() -> None:
    assert verify_webhook(headers(), BODY, text_of(SECRET), now=1_000) == {"type": "ping"}
    with pytest.raises(InvalidSignature, match="no signature fits"):
        verify_webhook(headers(), BODY, text_of(b"another" * 5), now=1_000)


@pytest.mark.parametrize(
    ("name", "value"),
    [("Webhook-Id", "msg_2"), ("Webhook-Timestamp", "1001"), ("Webhook-Signature", "v1,AAAA")],
)
def test_whatever_is_signed_cannot_be_changed(name: str, value: str) -> None:
    with pytest.raises(InvalidSignature):
        verify_webhook(headers() | {name: value}, BODY, text_of(SECRET), now=1_000)
    with pytest.raises(InvalidSignature):
        verify_webhook(headers(), BODY + b" ", text_of(SECRET), now=1_000)


@pytest.mark.parametrize("now", [1_301, 699])
def test_a_message_of_another_time_is_refused(now: float) -> None:
    with pytest.raises(InvalidSignature, match="further from now"):
        verify_webhook(headers(), BODY, text_of(SECRET), now=now)
    assert verify_webhook(headers(), BODY, text_of(SECRET), 301, now=now)


@pytest.mark.parametrize("value", ["", "soon", "-5", "١٠٠٠", "1e3"])
def test_what_is_no_time_is_refused(value: str) -> None:
    with pytest.raises(InvalidSignature, match="no time"):
        verify_webhook(headers() | {"Webhook-Timestamp": value}, BODY, text_of(SECRET), now=1_000)


def test_a_message_of_two_secrets_is_verified_with_either() -> None:
    old, new = b"o" * 32, b"n" * 32
    sent = headers(new, old)
    for secret in (old, new):
        assert verify_webhook(sent, BODY, text_of(secret), now=1_000)
    assert verify_webhook(headers(old), BODY, [text_of(new), text_of(old)], now=1_000)


def test_a_signature_of_another_version_counts_for_nothing() -> None:
    sent = headers()
    sent["Webhook-Signature"] = sent["Webhook-Signature"].replace("v1,", "v2,")
    with pytest.raises(InvalidSignature):
        verify_webhook(sent, BODY, text_of(SECRET), now=1_000)


def test_a_wrong_secret_is_not_repeated() -> None:
    with pytest.raises(ValueError, match="whsec_") as error:
        verify_webhook(headers(), BODY, "whsec_not base64!", now=1_000)
    assert "not base64" not in str(error.value)


# --- secrets ------------------------------------------------------------------------------------------------


def test_a_secret_is_the_same_in_each_process_and_other_for_each_webhook() -> None:
    keyring = Keyring((b"a" * 32,))
    first, second = keyring.new(), keyring.new()
    assert keyring.secret(first) == Keyring((b"a" * 32,)).secret(first)
    assert keyring.secret(first) != keyring.secret(second)
    assert len(keyring.secret(first) or b"") == 32


def test_a_secret_lives_as_long_as_the_one_it_was_made_with() -> None:
    old = Keyring((b"a" * 32,))
    source = old.new()
    both = Keyring((b"b" * 32, b"a" * 32))
    assert both.secret(source) == old.secret(source)
    assert old.secret(both.new()) is None
    assert Keyring((b"b" * 32,)).secret(source) is None


def test_without_a_secret_in_the_settings_there_are_no_webhooks() -> None:
    with pytest.raises(Conflict, match="MEMORY_ERASURE__SECRET"):
        Keyring(()).new()


def test_what_is_stored_and_shown_of_a_keyring_is_no_secret() -> None:
    keyring = Keyring((b"abracadabra" * 3,))
    assert "abracadabra" not in repr(keyring)
    source = keyring.new()
    assert b64encode(keyring.secret(source) or b"").decode() not in json.dumps(repr(source))


# --- pauses -------------------------------------------------------------------------------------------------


def pause(attempt: int, retry_after: float | None = None) -> float:
    return pause_seconds(
        attempt, base_seconds=5, longest_seconds=3_600, retry_after=retry_after, dice=Random(attempt)
    )


def test_pauses_double_with_jitter_up_to_the_longest() -> None:
    for attempt in range(1, 200):
        full = min(3_600.0, 5 * 2.0 ** min(attempt - 1, 60))
        assert full / 2 <= pause(attempt) <= full


def test_a_receiver_may_ask_for_a_pause_but_not_for_silence() -> None:
    assert pause(1, 60) == 60
    assert pause(1, 1e9) == 3_600
    assert pause(1, 0.1) >= 2.5


def test_a_webhook_is_given_up_after_days_of_failures_alone() -> None:
    after = timedelta(days=5)
    assert not is_given_up(None, now=NOW, after=after)
    assert not is_given_up(NOW - timedelta(days=4.9), now=NOW, after=after)
    assert is_given_up(NOW - timedelta(days=5), now=NOW, after=after)


# --- addresses ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "address", ["93.184.216.34", "8.8.8.8", "2606:4700::1111", "::ffff:8.8.8.8", "64:ff9b::808:808"]
)
def test_public_addresses_are_allowed(address: str) -> None:
    assert is_allowed(address, allow_private=False)


PRIVATE_ONES = [
    "127.0.0.1",
    "127.8.9.10",
    "::1",
    "10.1.2.3",
    "172.16.0.1",
    "192.168.1.1",
    "100.64.0.1",
    "fc00::1",
    "fdab::1",
    "::ffff:10.0.0.1",
    "64:ff9b::7f00:1",
    "2002:7f00:1::",
    "2002:a00:1::",
    "::127.0.0.1",
]


@pytest.mark.parametrize("address", PRIVATE_ONES)
def test_private_addresses_are_refused_unless_allowed(address: str) -> None:
    assert not is_allowed(address, allow_private=False)
    assert is_allowed(address, allow_private=True)


@pytest.mark.parametrize(
    "address",
    [
        "169.254.169.254",
        "::ffff:169.254.169.254",
        "64:ff9b::a9fe:a9fe",
        "fe80::1",
        "fe80::1%eth0",
        "0.0.0.0",
        "::",
        "224.0.0.1",
        "224.0.1.1",
        "ff02::1",
        "240.0.0.1",
        "255.255.255.255",
        "168.63.129.16",
        "100.100.100.200",
        "192.0.0.192",
        "fd00:ec2::254",
        "64:ff9b:1::1",
    ],
)
def test_addresses_that_no_receiver_has_are_always_refused(address: str) -> None:
    assert not is_allowed(address, allow_private=False)
    assert not is_allowed(address, allow_private=True)


@pytest.mark.parametrize(
    "url",
    [
        "https://127.0.0.1/",
        "https://localhost/",
        "https://[::1]/",
        "https://[::ffff:127.0.0.1]/",
        "https://2130706433/",
        "https://0x7f000001/",
        "https://0177.0.0.1/",
        "https://127.1/",
    ],
)
def test_a_webhook_to_a_private_address_is_refused_however_it_is_written(url: str) -> None:
    with pytest.raises(InvalidInput, match="private") as error:
        check_reachable(read_url(url, PUBLIC), PUBLIC)
    assert error.value.field == "url"
    assert "127" not in error.value.message


def test_a_name_with_one_private_address_among_others_is_refused() -> None:
    target = read_url("https://hooks.example.com/", PUBLIC)
    check_reachable(target, PUBLIC, lambda host, port: ("8.8.8.8", "2606:4700::1111"))
    with pytest.raises(InvalidInput, match="private"):
        check_reachable(target, PUBLIC, lambda host, port: ("8.8.8.8", "10.0.0.1"))
    with pytest.raises(InvalidInput):
        check_reachable(target, PUBLIC, lambda host, port: ())


def test_a_name_that_cannot_be_resolved_is_refused() -> None:
    def unknown(host: str, port: int) -> tuple[str, ...]:
        raise OSError

    with pytest.raises(InvalidInput, match="not found"):
        check_reachable(read_url("https://hooks.example.com/", PUBLIC), PUBLIC, unknown)


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("", "https address"),
        ("hooks.example.com", "https address"),
        ("ftp://hooks.example.com/", "https address"),
        ("file:///etc/passwd", "https address"),
        ("https:///hook", "https address"),
        ("http://hooks.example.com/", "ALLOW_HTTP"),
        ("https://mira:secret@hooks.example.com/", "user and password"),
        ("https://@hooks.example.com/", "user and password"),
        ("https://hooks.example.com/#part", "fragment"),
        ("https://hooks.example.com:22/", "PORTS"),
        ("https://hooks.example.com:99999/", "not a valid"),
        ("https://hooks.example.com:no/", "not a valid"),
        ("https://[::1/", "not a valid"),
        ("https://hooks..example.com/", "host name"),
        ("https://" + "a" * 64 + ".example.com/", "host name"),
        ("https://hooks.example.com/a b", "spaces"),
        ("https://hooks.example.com/\r\nHost: other", "printable"),
        ("https://hóoks.example.com/", "ASCII"),
        ("https://hooks.example.com/" + "a" * 2_000, "characters"),
    ],
)
def test_a_url_that_cannot_be_used_is_refused_by_field_and_not_repeated(url: str, words: str) -> None:
    rules = Rules(ports=frozenset({443, 8443}))
    with pytest.raises(InvalidInput, match=words) as error:
        read_url(url, rules)
    assert error.value.field == "url"
    assert "secret" not in error.value.message


def test_a_url_keeps_its_path_query_and_port() -> None:
    assert read_url("https://Hooks.Example.com:8443/a/b?c=d", PUBLIC) == Target(
        "https", "hooks.example.com", 8443, "/a/b?c=d"
    )
    assert read_url("https://hooks.example.com", PUBLIC) == Target("https", "hooks.example.com", 443, "/")
    assert read_url("http://[2001:db8::1]/x", Rules(allow_http=True)).host == "2001:db8::1"
