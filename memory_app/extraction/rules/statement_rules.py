"""Every rule for lasting statements, in the order in which they are tried: the stricter before the looser."""

from __future__ import annotations

from memory_app.extraction.rules.holdings import FRICTION, HOLDINGS
from memory_app.extraction.rules.identity import HOME, IDENTITY, WORK
from memory_app.extraction.rules.taste import FOOD, STUDY, TASTE

STATEMENT_RULES = (*FOOD, *IDENTITY, *WORK, *HOME, *TASTE, *STUDY, *HOLDINGS, *FRICTION)
