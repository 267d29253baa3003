"""The address of a Redis: one reading for both clients, and no way to weaken TLS by the address alone."""

from __future__ import annotations

from pathlib import Path

import pytest
from kombu.utils.url import parse_url

from memory_app import redis_url
from memory_app.errors import Misconfigured
from memory_app.redis_url import Address, Tls

SENTINELS = "sentinel://user:p%40ss@one:1,two/3?primary=main"


def test_one_address_names_the_sentinels_the_primary_and_the_login() -> None:
    assert redis_url.read(SENTINELS) == Address((("one", 1), ("two", 26379)), "main", 3, "user", "p@ss")
    assert "p@ss" not in repr(redis_url.read(SENTINELS))


def test_an_address_of_a_redis_has_one_host_with_the_usual_port() -> None:
    assert redis_url.read("redis://localhost") == Address((("localhost", 6379),))
    assert redis_url.read("redis://:pw@[::1]:7/2") == Address((("::1", 7),), None, 2, None, "pw")


@pytest.mark.parametrize("password", ["p@ss:w/rd?#%", "plain", "ä ö"])
def test_the_broker_reads_the_same_login_from_its_url(password: str) -> None:
    address = Address((("host", 1),), None, 4, "us:er", password)
    parsed = parse_url(address.broker_url())
    assert (parsed["userid"], parsed["password"]) == ("us:er", password)
    assert (parsed["hostname"], parsed["port"], parsed["virtual_host"]) == ("host", 1, "4")


def test_tls_is_verified_and_the_ca_of_the_address_precedes_the_settings(ca_file: Path) -> None:
    plain = redis_url.read("rediss://host/0", ca_file=str(ca_file))
    assert plain.tls == Tls(ca_file=str(ca_file))
    named = redis_url.read(
        f"rediss://host/0?ssl_ca_certs={ca_file}&ssl_cert_reqs=CERT_REQUIRED", ca_file="/none"
    )
    assert named.tls is not None
    assert named.tls.options()["ssl_ca_certs"] == str(ca_file)
    assert (named.tls.options()["ssl_cert_reqs"], named.tls.options()["ssl_check_hostname"]) == (
        "required",
        True,
    )
    assert redis_url.read("redis://host/0", ca_file=str(ca_file)).tls is None


@pytest.mark.parametrize(
    "option",
    ["ssl_cert_reqs=CERT_NONE", "ssl_cert_reqs=none", "ssl_cert_reqs=optional", "ssl_check_hostname=false"],
)
def test_an_address_cannot_switch_verification_off(option: str) -> None:
    with pytest.raises(Misconfigured, match="MEMORY_REDIS__VERIFY_TLS=false") as raised:
        redis_url.read(f"rediss://user:secret@host/0?{option}", setting="broker.url")
    assert raised.value.message.startswith(f"broker.url: {option} would trust any server")
    assert "secret" not in str(raised.value)


def test_the_settings_can() -> None:
    tls = redis_url.read("rediss://host/0", is_verified=False).tls
    assert tls is not None
    assert (tls.options()["ssl_cert_reqs"], tls.options()["ssl_check_hostname"]) == ("none", False)


def test_a_ca_file_that_is_missing_or_no_certificate_is_named(tmp_path: Path) -> None:
    with pytest.raises(Misconfigured, match=r"CA file .*missing.pem cannot be read \(No such file"):
        redis_url.read("rediss://host/0", ca_file=str(tmp_path / "missing.pem"))
    (tmp_path / "text.pem").write_text("hello")
    with pytest.raises(Misconfigured, match="not a PEM file"):
        redis_url.read(f"rediss://host/0?ssl_ca_certs={tmp_path / 'text.pem'}")


@pytest.mark.parametrize(
    ("url", "complaint"),
    [
        ("http://user:secret@host", "not the address of a Redis"),
        ("redis://user:secret@host:port/0", "not the address of a Redis"),
        ("redis://user:secret@/0", "not the address of a Redis"),
        ("redis://user:secret@host/zero", "not the address of a Redis"),
        ("unix://user:secret@/run/redis.sock", "not the address of a Redis"),
        ("redis://one:secret@one,two/0", "primary=NAME"),
        ("redis://user:secret@host/0?primary=main", "primary=NAME"),
        ("sentinel://user:secret@one:1/0", "primary=NAME"),
        ("sentinel://user:secret@one/zero?primary=main", "not the address of a Redis"),
        ("redis://user:secret@host/0?ssl_ca_certs=/ca.pem", "ssl_ca_certs needs TLS; write rediss://"),
        ("redis://user:secret@host/0?db=3", "unknown option 'db'"),
        ("rediss://user:secret@host/0?health_check_interval=3", "unknown option 'health_check_interval'"),
    ],
)
def test_what_is_no_address_is_refused_without_repeating_it(url: str, complaint: str) -> None:
    with pytest.raises(Misconfigured) as raised:
        redis_url.read(url)
    assert complaint in raised.value.message
    assert "secret" not in raised.value.message
    assert raised.value.field == "redis.url"


@pytest.fixture
def ca_file(tmp_path: Path) -> Path:
    """The authorities of this system stand for one."""
    certifi = pytest.importorskip("certifi")
    file = tmp_path / "ca.pem"
    file.write_text(Path(certifi.where()).read_text())
    return file
