"""JSON without what JSON has not (NaN, infinity), and without integers that no column of the database holds."""

from __future__ import annotations

import json
import math
from typing import NoReturn

# Of a bigint column; a larger number would only fail in the database.
LARGEST_INTEGER = 2**63 - 1


def _refuse(constant: str) -> NoReturn:
    raise json.JSONDecodeError(f"{constant} is not JSON", constant, 0)


def _finite_float(literal: str) -> float:
    value = float(literal)
    if math.isinf(value):
        raise json.JSONDecodeError("number out of range", literal, 0)
    return value


def _small_integer(literal: str) -> int:
    # The length first: int() of many digits takes time that grows with their square.
    if len(literal) > 20 or abs(int(literal)) > LARGEST_INTEGER:
        raise json.JSONDecodeError("number out of range", literal, 0)
    return int(literal)


DECODER = json.JSONDecoder(parse_constant=_refuse, parse_float=_finite_float, parse_int=_small_integer)
"""Raises `json.JSONDecodeError`, `ValueError` or `RecursionError`, which all mean "malformed"."""
