"""Names of the PostgreSQL servers that hold shards."""

from __future__ import annotations

import re

HOME_SERVER = "home"
"""The server of the home shard, as commands and the list of shards call it."""

SERVER_NAME = re.compile(r"[a-z][a-z0-9_]{0,31}")
"""The name of a further server, which can be part of that of a variable."""
