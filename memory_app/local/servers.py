"""Settings that reach the embedded servers of a data folder."""

from __future__ import annotations

from memory_app.local.embedded import Servers, place
from memory_app.settings import Settings

ERASURE_SECRET = "erasure-secret"
"""File of the data folder with the secret that keys digests of erased names; `memory up` makes it."""


def embedded_settings(servers: Servers, **sections: dict[str, object]) -> Settings:
    """The settings of the environment with embedded servers in place of others; ``sections`` go on top."""
    database = {"url": servers.app_url, "owner_url": servers.owner_url}
    values: dict[str, dict[str, object]] = {
        "database": {**database},
        "redis": {"url": servers.redis_url},
        # A broker of the environment would be another server than the hot memory beside it.
        "broker": {"url": None},
    }
    # One of the environment counts, as everywhere.
    erasure_secret = place.read(servers.folder / ERASURE_SECRET)
    if erasure_secret and Settings().erasure.secret is None:
        values["erasure"] = {"secret": erasure_secret}
    for name, section in sections.items():
        values[name] = {**values.get(name, {}), **section}
    # The model checks each section; to the type checker they are all the same.
    return Settings(data_folder=servers.folder, **values)  # type: ignore[arg-type]
