"""How vectors travel to the server, and back."""

from __future__ import annotations

import numpy as np
from sqlalchemy import Engine, text

from memory_app.db.vectors import vector_of, vector_text

MOST_DIMENSIONS = 16_000
"""Of a ``halfvec``."""


def test_the_server_reads_each_number_of_half_precision_as_it_was(owner: Engine) -> None:
    halves = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    # pgvector takes neither infinity nor what is no number.
    finite = halves[np.isfinite(halves)]
    with owner.connect() as connection:
        for begin in range(0, len(finite), MOST_DIMENSIONS):
            part = finite[begin : begin + MOST_DIMENSIONS]
            sent = connection.scalar(
                text("SELECT halfvec_send(CAST(:vector AS halfvec))"), {"vector": vector_text(part)}
            )
            assert sent is not None
            assert vector_of(bytes(sent)).astype(np.float16).tobytes() == part.tobytes()


def test_a_vector_of_other_precision_is_rounded_to_the_nearest_half() -> None:
    assert vector_text([0.1, -1, 0.333333333]) == "[0.1,-1.0,0.3333]"
    assert vector_text(np.array([0.1, -1], dtype=np.float32)) == "[0.1,-1.0]"
