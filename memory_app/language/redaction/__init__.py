"""Find and take out what must not be kept: cards, accounts, keys, passwords, e-mail, phones, national ids. Pure."""

from memory_app.language.redaction.kinds import PrivateKind, Redaction
from memory_app.language.redaction.redact import EMPTY, NO_RULES, Redacted, Rules, mark_of, redact

__all__ = ["EMPTY", "NO_RULES", "PrivateKind", "Redacted", "Redaction", "Rules", "mark_of", "redact"]
