"""What crashes quote, and which there are, for those that crash and those that look at what was written."""

from __future__ import annotations

CANARY = "zanzibar-canary-7731"

MAIN_FALLS = "CRASHING_MAIN"
"""Set in the environment of a worker whose main process is to fall over at its start."""

KINDS = (
    "unexpected",
    "expected",
    "unpicklable",
    "group",
    "memory",
    "exit",
    "reject",
    "ignore",
    "retry",
    "database",
    "nothing",
)
"""How a task fails; the last one does not."""
