"""Changes of work and home that no pattern of the pack tells: rules in English."""

from __future__ import annotations

from memory_app.extraction.rules.patterns import OBJECT, Rule

WORK = (
    Rule(
        "quit|left|lost",
        r"(?P<past>quit|left|lost) (?P<object>my (?:[\w-]+ ){0,2}job)(?: (?:as|at) .*|,.*)?",
        relation="{past}",
        says="{past} their job",
        value="job",
        importance=6,
        starts=True,
    ),
    Rule(
        "got",
        rf"got (?:a |the )?(?:new )?job as (?:an? ){OBJECT}",
        relation="job_title",
        says="got a job as a {object}",
        brief=True,
        importance=7,
        starts=True,
    ),
    Rule(
        "got",
        r"got promoted to (?:an? )?(?P<object>.+)",
        relation="job_title",
        says="got promoted to {object}",
        brief=True,
        importance=7,
        starts=True,
    ),
    Rule(
        "run|own",
        r"(?P<verb>run|own) (?P<object>(?:an? |my own |the ).+)",
        relation="owns",
        says="{verb} {object}",
        importance=6,
    ),
    Rule(
        "am",
        r"am the (?P<object>(?:owner|founder|co-founder|ceo|head|captain|president|director|manager) of .+)",
        relation="is",
        says="is the {object}",
        importance=6,
    ),
    Rule(
        "moved",
        rf"moved (?:here )?from {OBJECT}",
        relation="moved_from",
        says="moved from {object}",
        importance=6,
        entity="place",
        starts=True,
    ),
)
