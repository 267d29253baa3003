"""Case files go through the product's own way from a turn to a memory, and the figures are those of what was kept."""

from __future__ import annotations

from pathlib import Path

from memory_app import MemoryApp
from memory_app.bench import cases, extraction
from memory_app.runtime import Runtime

CASES = """
language = "en"

[[chat]]
group = "home"
turns = [
  { text = "I live in Lisbon near the river.", keep = [{ relation = "lives_in", object = "Lisbon" }] },
  { text = "Nice, how long?", role = "assistant" },
  { text = "Do I look as if I lived in a palace?", nothing = "question" },
]
now = [{ relation = "lives_in", object = "Lisbon" }]

[[chat]]
group = "health"
turns = [{ text = "I am allergic to peanuts.", keep = [
  { relation = "allergic_to", object = "peanuts" },
  { relation = "takes_medicine", object = "cetirizine" },
] }]
"""


def test_figures_tell_what_was_kept_and_what_is_missing(
    runtime: Runtime, tenant: int, tmp_path: Path
) -> None:
    path = tmp_path / "en.toml"
    path.write_text(CASES)

    figures = extraction.measure(MemoryApp(runtime, tenant), cases.load(path), say=lambda _: None)["en"]

    assert (figures["turns"], figures["facts"], figures["kept"]) == (4, 3, 2)
    assert figures["coverage"] == 0.6667
    assert (figures["memories"], figures["right"], figures["precision"]) == (2, 2, 1.0)
    assert (figures["states"], figures["states_right"]) == (1, 1)
    assert figures["by_group"]["health"]["coverage"] == 0.5
    assert figures["by_relation"]["allergic_to"] == {"facts": 1, "kept": 1, "memories": 1, "right": 1}
    (fault,) = figures["faults"]
    assert (fault["fault"], fault["what"]) == ("missing", "takes_medicine cetirizine")
