"""Every rule for lasting statements, in the order in which they are tried: the stricter before the looser."""

from __future__ import annotations

from memory_app.extraction.rules.holdings import FRICTION, HOLDINGS
from memory_app.extraction.rules.taste import FOOD, STUDY, TASTE
from memory_app.extraction.rules.work import WORK

STATEMENT_RULES = (*FOOD, *WORK, *TASTE, *STUDY, *HOLDINGS, *FRICTION)
