"""What is taken out of a text before it is stored, what is left alone, and that no text takes long."""

from __future__ import annotations

import pytest

from memory_app.language.redaction import EMPTY, PrivateKind, Redaction, Rules, redact

MASK = Rules(Redaction.MASK)
DROP = Rules(Redaction.DROP)

# Numbers of makers' own test pages and of documentation: valid, and nobody's. Keys are put together here, so that no
# scanner for secrets takes this file for a leak.
PRIVATE = [
    ("My card is 4111 1111 1111 1111, thanks", "card", "4111 1111 1111 1111"),
    ("Visa 4242424242424242 exp 12/27", "card", "4242424242424242"),
    ("use 5555-5555-5555-4444 please", "card", "5555-5555-5555-4444"),
    ("Amex: 3782 822463 10005.", "card", "3782 822463 10005"),
    ("6011.1111.1111.1117 is it", "card", "6011.1111.1111.1117"),
    ("卡号4111111111111111是我的", "card", "4111111111111111"),
    ("In 2024 4111 1111 1111 1111 was mine", "card", "4111 1111 1111 1111"),
    ("4111\u00a01111\u00a01111\u00a01111", "card", "4111\u00a01111\u00a01111\u00a01111"),
    ("4 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1", "card", "4 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1"),
    ("6200000000000005 UnionPay", "card", "6200000000000005"),
    ("IBAN DE89 3704 0044 0532 0130 00 bitte", "iban", "DE89 3704 0044 0532 0130 00"),
    ("send it to gb29nwbk60161331926819", "iban", "gb29nwbk60161331926819"),
    ("FR1420041010050500013M02606 est le mien", "iban", "FR1420041010050500013M02606"),
    ("write to jane.doe+news@mail.example.co.uk.", "email", "jane.doe+news@mail.example.co.uk"),
    ("(bob@example.com)", "email", "bob@example.com"),
    ("jürgen@müller-bau.de schreibt", "email", "jürgen@müller-bau.de"),
    ("anna (at) example (dot) org", "email", "anna (at) example (dot) org"),
    ("call me at +1 650-253-0000 tonight", "phone", "+1 650-253-0000"),
    ("Meine Nummer: +49 170 1234567.", "phone", "+49 170 1234567"),
    ("0049 30 901820 im Büro", "phone", "0049 30 901820"),
    ("(555) 123-4567 works", "phone", "(555) 123-4567"),
    ("reach me on 650.253.0000", "phone", "650.253.0000"),
    ("Rufen Sie 030 901820 an", "phone", "030 901820"),
    ("mon portable 06 12 34 56 78", "phone", "06 12 34 56 78"),
    ("my phone number is 5551234567", "phone", "5551234567"),
    ("mi número es 612345678", "phone", "612345678"),
    (
        "my key " + "sk-" + "proj-abcDEF0123456789abcDEF0123456789",
        "key",
        "sk-" + "proj-abcDEF0123456789abcDEF0123456789",
    ),
    ("AWS " + "AKIA" + "IOSFODNN7EXAMPLE here", "key", "AKIA" + "IOSFODNN7EXAMPLE"),
    (
        "git: " + "ghp_" + "a1B2c3D4e5F6a1B2c3D4e5F6a1B2c3D4e5F6",
        "key",
        "ghp_" + "a1B2c3D4e5F6a1B2c3D4e5F6a1B2c3D4e5F6",
    ),
    ("Authorization: Bearer abc123def456ghi789", "key", "abc123def456ghi789"),
    ('api_key = "9f86d081884c7d659a2f"', "key", "9f86d081884c7d659a2f"),
    (
        "eyJhbGciOiJIUzI1NiJ9" + ".eyJzdWIiOiIxMjM0In0.abcdefghijklmno",
        "key",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abcdefghijklmno",
    ),
    ("-----BEGIN RSA " + "PRIVATE KEY-----\nMIIEow\n-----END RSA " + "PRIVATE KEY-----", "key", "MIIEow"),
    ("my password is hunter2", "password", "hunter2"),
    ("Password: correct-horse-battery.", "password", "correct-horse-battery"),
    ("the password is sunshine", "password", "sunshine"),
    ('{"password": "Tr0ub4dor&3"}', "password", "Tr0ub4dor&3"),
    ("Mein Passwort lautet Sommer2024!", "password", "Sommer2024"),
    ("mi contraseña es perrito99", "password", "perrito99"),
    ("mon mot de passe est soleil12", "password", "soleil12"),
    ("密码是abc12345", "password", "abc12345"),
    ("my PIN is 4711", "password", "4711"),
    ("CVV: 123", "password", "123"),
    ("postgresql://app:s3cr3tpw@db/app", "password", "s3cr3tpw"),
    ("SSN 536-22-1234 on file", "national_id", "536-22-1234"),
    ("my social security number is 536221234", "national_id", "536221234"),
    ("CPF 390.533.447-05", "national_id", "390.533.447-05"),
    ("NI number: AB 12 34 56 C", "national_id", "AB 12 34 56 C"),
    ("DNI 12345678Z", "national_id", "12345678Z"),
    ("codice fiscale RCCMNL83S18D969H", "national_id", "RCCMNL83S18D969H"),
    ("Steuer-ID: 36 574 261 809", "national_id", "36 574 261 809"),
    ("身份证11010519491231002X", "national_id", "11010519491231002X"),
    ("BSN 111222333", "national_id", "111222333"),
    ("AHV 756.9217.0769.85", "national_id", "756.9217.0769.85"),
    ("My passport number is X1234567", "national_id", "X1234567"),
]

# Numbers and words that look alike and are nobody's secret.
HARMLESS = [
    "Order 4111111111111112 was shipped",
    "order number 1234567890123456",
    "Invoice 2024-000123456789, due 2024-12-31",
    "ISBN 978-3-16-148410-0 and ISBN-10 0-306-40615-2",
    "EAN 4006381333931",
    "on 2024-01-15 at 12:30:45, and on 15/01/2024, 01-02-2024, 31.12.2023",
    "2026-01-31T09:00:00+01:00",
    "version 10.2.3045.1178, Chrome/120.0.6099.109, 1.2.3-rc.4",
    "192.168.100.200:8080 and fe80::1ff:fe23:4567:890a",
    "550e8400-e29b-41d4-a716-446655440000",
    "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "epoch 1700000000000 and 1700000000",
    "pi is 3.14159265358979323846, e is 2.718281828459045",
    "0.4111111111111111 of it",
    "population 1 425 893 465, budget 12 345 678 901 USD, 1,234,567,890",
    "lat 52.520008, lon 13.404954",
    "npm i lodash@4.17.21 @types/node@20.1.0",
    "git clone git@github.com:owner/name.git",
    "x = arr[1000000:2000000]; y = 0xDEADBEEF12345678",
    "def f(a, b=1234567890): return a @ b",
    "tracking 1Z999AA10123456784",
    "The password is required and the password was reset",
    "Reset your password: see the policy. Das Passwort ist falsch",
    "password = os.environ['DB_PASSWORD']; password=get_password(user)",
    "The api key is missing; set API_KEY=$API_KEY or token: string",
    "I bought 2 phones for 1200 dollars in 2023",
    "pin it to the board with 4 pins; pin 3 versions",
    "call me about order 123456789",
    "call me on 2024-12-24",
    "room 0815, flight LH 0123, bus 010 20",
    "ticket #123456789, PR 98765, RFC 8259, ISO 8601-1:2019",
    "Route 66, 1-800 meters, 100-200-300",
    "0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20",
    "my favourite number is 7, scores 21-15 18-21 15-13",
    "Bearer of good news and basic understanding of things",
    "I'm vegan and allergic to peanuts. Ich heiße Anna.",
]


@pytest.mark.parametrize(("text", "kind", "secret"), PRIVATE)
def test_a_private_part_is_masked_and_counted(text: str, kind: str, secret: str) -> None:
    redacted = redact(text, MASK)
    assert secret not in redacted.text
    assert f"[{kind.replace('_', ' ')}]" in redacted.text
    assert redacted.counts.get(PrivateKind(kind), 0) >= 1


@pytest.mark.parametrize(("text", "kind", "secret"), PRIVATE)
def test_a_dropped_part_leaves_no_mark(text: str, kind: str, secret: str) -> None:
    redacted = redact(text, DROP)
    assert secret not in redacted.text
    assert redacted.text == EMPTY or "[" not in redacted.text
    assert redacted.text.strip()


@pytest.mark.parametrize(("text", "kind", "secret"), PRIVATE)
def test_redacting_twice_changes_nothing_more(text: str, kind: str, secret: str) -> None:
    once = redact(text, MASK).text
    assert redact(once, MASK).text == once


@pytest.mark.parametrize("text", HARMLESS)
def test_what_only_looks_alike_is_left_alone(text: str) -> None:
    redacted = redact(text, MASK)
    assert (redacted.text, dict(redacted.counts)) == (text, {})


@pytest.mark.parametrize("text", [text for text, _, _ in PRIVATE])
def test_off_changes_nothing(text: str) -> None:
    assert redact(text, Rules()).text == text


def test_only_the_kinds_that_are_named_are_taken_out() -> None:
    rules = Rules(Redaction.MASK, frozenset({PrivateKind.CARD}))
    redacted = redact("4111 1111 1111 1111, bob@example.com", rules)
    assert redacted.text == "[card], bob@example.com"
    assert redacted.counts == {PrivateKind.CARD: 1}


def test_each_part_of_a_text_is_counted_once() -> None:
    text = "bob@example.com, ann@example.com, 4111 1111 1111 1111, IBAN DE89370400440532013000"
    redacted = redact(text, MASK)
    assert redacted.text == "[email], [email], [card], IBAN [iban]"
    assert redacted.counts == {PrivateKind.EMAIL: 2, PrivateKind.CARD: 1, PrivateKind.IBAN: 1}


def test_a_text_of_nothing_else_still_says_something() -> None:
    assert redact("4111 1111 1111 1111", DROP).text == EMPTY


def test_dropping_closes_the_gap_and_touches_nothing_else() -> None:
    assert redact("my card 4111 1111 1111 1111 is  old", DROP).text == "my card is  old"


# Each repeats what a pattern begins with.
RUNS = [
    *("1", "4 ", "1-", "+1 ", "0 1 ", "00 1", "(555) ", "AB12", "["),
    *("a", "a@", "@", "a@a.", "a (at) b.", " ", "DE89 ", "sk-", "eyJa."),
    *(
        "password is ",
        "pin ",
        "call me at 1",
        "ssn ",
        "api_key=",
        "http://a:",
        "-----BEGIN " + "PRIVATE KEY-----",
    ),
]


@pytest.mark.slow
@pytest.mark.timeout(120)
@pytest.mark.parametrize("unit", RUNS)
def test_long_runs_do_not_hold_it_up(unit: str) -> None:
    length = 100_000
    # The square of that many steps would be over the limit by far, whatever the machine does beside.
    redact((unit * (length // len(unit) + 1))[:length] + " 1@", MASK)
