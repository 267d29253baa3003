"""How many cores one process takes for its products of matrices."""

from __future__ import annotations

from threadpoolctl import threadpool_limits


def take_one() -> None:
    """From here on BLAS uses one thread in this process. numpy must have been imported before.

    Our matrices are small and our processes many. Spread over all cores, a product ends no sooner, while its threads
    wait for each other in busy loops and keep everybody else from the cores: with it the reply to a chat took twice as
    long while another process consolidated.
    """
    threadpool_limits(limits=1, user_api="blas")
