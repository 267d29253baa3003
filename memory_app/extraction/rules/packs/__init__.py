"""Rules as data: a pack for each language (``*.toml``), and one engine that reads by them and knows no language.

`format` describes the file of a pack and `notation` its patterns; `pack` reads, checks and compiles one.
`turn_language` tells which pack reads a turn, `clauses` cuts its text, `facts` makes facts of the clauses, and `dates`
and `slot_values` judge what stands in a fact.
"""
