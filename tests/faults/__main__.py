"""``make faults``: the whole catalogue, one fault after the other, then a storm; one table at the end.

``STORM_MINUTES`` (3) and ``SOAK_MINUTES`` (1.5) lengthen the storm and the soak, ``STORM_SEED`` (1) makes
another storm. Further arguments go to pytest, as in ``python -m tests.faults -k F13``.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent

if __name__ == "__main__":
    options = ["-m", "faults", "-p", "no:randomly", "-rfE", "--durations=10", "--capture=tee-sys"]
    sys.exit(pytest.main([str(HERE), *options, *sys.argv[1:]]))
