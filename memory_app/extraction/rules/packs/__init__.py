"""Rules as data: a pack for each language (``*.toml``), and one engine that reads by them and knows no language.

`notation` translates patterns, `format` describes a pack, `loading` reads, checks and compiles it. `turn_language`
tells which pack reads a turn, `reading` makes facts of its text, `dates` and `whole` judge what stands in a fact.
"""
