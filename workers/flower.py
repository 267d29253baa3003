"""Flower under our logging: its own would print what an exception quotes. Takes the arguments of ``celery``."""

from __future__ import annotations

from celery.__main__ import main

from memory_app.log import configure
from memory_app.queue import ROUTES
from memory_app.settings import Settings

if __name__ == "__main__":
    settings = Settings().log
    configure(level=settings.level, form=settings.form, names=ROUTES.keys())
    main()
