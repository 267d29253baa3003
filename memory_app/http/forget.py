"""Routes that forget for good."""

from __future__ import annotations

from fastapi import APIRouter

from memory_app.http.strict import StrictRoute

router = APIRouter(route_class=StrictRoute, tags=["forget"])
