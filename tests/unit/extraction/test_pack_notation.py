"""The notation of the patterns of a language pack, and what is said of a pack that is broken."""

from __future__ import annotations

import re
from collections.abc import Iterable
from importlib.resources import files
from pathlib import Path
from re import _parser  # type: ignore[attr-defined]
from typing import Any

import pytest

from memory_app.errors import Misconfigured
from memory_app.extraction.rules import packs
from memory_app.extraction.rules.packs.notation import BrokenPattern, translate
from memory_app.extraction.rules.packs.pack import LANGUAGES, check_packs, pack_of, parse
from workers import signals

SLOTS = {"place": r"\w+", "thing": r"\w+"}

GERMAN = (files(packs) / "de.toml").read_text(encoding="utf-8")


def fits(pattern: str, text: str) -> bool:
    return re.fullmatch(translate(pattern, SLOTS), text) is not None


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("ich wohne in <place>", "ich wohne in Ulm"),
        ("[ich] wohne in <place>", "wohne in Ulm"),
        ("[ich] [jetzt] wohne in <place>", "jetzt wohne in Ulm"),
        ("ich wohne [jetzt] in <place>", "ich wohne in Ulm"),
        ("ich wohne [jetzt] in <place>", "ich wohne jetzt in Ulm"),
        ("wohne in <place> [jetzt]", "wohne in Ulm"),
        ("wohne in <place> [seit langem] [jetzt]", "wohne in Ulm jetzt"),
        ("ich (wohne|lebe) in <place>", "ich lebe in Ulm"),
        ("Lehrer[in]", "Lehrerin"),
        ("*lehrer", "Grundschullehrer"),
        ("<thing>, nicht <thing2>", "Tee, nicht Kaffee"),
        ("mein (ziel|[großer] traum)", "mein traum"),
        ("bin 1.83 groß", "bin 1.83 groß"),
    ],
)
def test_a_pattern_fits(pattern: str, text: str) -> None:
    assert fits(pattern, text)


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("ich wohne in <place>", "ich wohne in  Ulm"),
        ("ich wohne [jetzt] in <place>", "ich wohne  in Ulm"),
        ("bin 1.83 groß", "bin 1x83 groß"),
        ("a|b", "ab"),
    ],
)
def test_a_pattern_does_not_fit(pattern: str, text: str) -> None:
    assert not fits(pattern, text)


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("ich (wohne in <place>", "( is not closed"),
        ("ich wohne] in <place>", "] closes nothing"),
        ("ich (wohne] in", "] closes nothing"),
        ("ich wohne in <town>", "<town> is neither a slot nor a list of words of this pack"),
        ("ich wohne in < place", "< does not begin a name"),
        ("<place> und <place>", "<place> stands twice"),
        ("ich []wohne", "[] is empty"),
    ],
)
def test_a_broken_pattern_says_what_is_wrong(pattern: str, reason: str) -> None:
    with pytest.raises(BrokenPattern, match=re.escape(reason)):
        translate(pattern, SLOTS)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "in <place> (wohne|lebe|wohn|leb) ich",
            "in <place (wohne",
            "(lives_in): 'in <place (wohne': < does",
        ),
        ('relation = "lives_in"', 'relation = "livs_in"', "relation 'livs_in' is unknown"),
        ('sister = ["schwester"', 'sistr = ["schwester"', "relation 'sistr' is unknown"),
        ("importance = 8", "importance = 11", "importance"),
        ("importance = 8", "importnce = 8", "importnce"),
        ('language = "de"', "language = de", "is not TOML"),
        ("halb|vielleicht", "(halb|vielleicht", "stop.rest"),
        ("[letzten|vergangenen] <weekday>", "[letzten <weekday>", "date.rule"),
    ],
)
def test_a_broken_pack_is_named_with_what_is_wrong(old: str, new: str, message: str) -> None:
    assert old in GERMAN
    with pytest.raises(Misconfigured) as caught:
        parse(GERMAN.replace(old, new, 1), name="de.toml")
    assert caught.value.message.startswith("language pack de.toml: ")
    assert message in caught.value.message


def test_all_packs_that_ship_are_whole() -> None:
    check_packs()
    assert "de" in LANGUAGES
    for language in LANGUAGES:
        pack = pack_of(language)
        assert pack is not None
        assert pack.file.language == language


def test_a_broken_pack_ends_the_start_of_a_worker_in_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = tmp_path / "xx.toml"
    broken.write_text(GERMAN.replace('relation = "lives_in"', 'relation = "livs_in"'), encoding="utf-8")
    monkeypatch.setitem(packs.pack._FILES, "xx", broken)
    with pytest.raises(
        SystemExit, match=r"^memory: language pack xx.toml: rule \d+: relation 'livs_in' is unknown"
    ):
        signals._check_packs()


def test_a_language_without_a_pack_has_none() -> None:
    assert pack_of("xx") is None


# --- what a pattern may cost ----------------------------------------------------------------------------------

MOST_REPEATED = 200
"""Characters or words that one part of a pattern may take."""


def repeats(parsed: Any) -> Iterable[int]:
    """The upper bounds of all repetitions in a parsed regular expression."""
    for operation, argument in parsed:
        if str(operation) in ("MAX_REPEAT", "MIN_REPEAT"):
            _, most, inner = argument
            yield int(most)
            yield from repeats(inner)
        elif str(operation) == "SUBPATTERN":
            yield from repeats(argument[-1])
        elif str(operation) == "BRANCH":
            for branch in argument[1]:
                yield from repeats(branch)


@pytest.mark.parametrize("language", sorted(LANGUAGES))
def test_no_pattern_of_a_rule_repeats_without_bound(language: str) -> None:
    pack = pack_of(language)
    assert pack is not None
    for pattern in (rule_pattern.pattern for rule_pattern in (*pack.rules, *pack.anywhere)):
        bounds = list(repeats(_parser.parse(pattern.pattern, pattern.flags)))
        assert max(bounds, default=0) <= MOST_REPEATED, pattern.pattern
