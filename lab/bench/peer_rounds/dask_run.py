"""Rounds of Dask: `Client.run` on a local cluster with a single-threaded worker process per owner.

`Client.run` sends a function with its arguments to all workers and gathers the results. The dashboard and its
bookkeeping are off.
"""

from __future__ import annotations

import sys
from importlib.metadata import version


def answer(_broadcast: bytes, reply_bytes: int) -> bytes:
    """An owner's part of a round."""
    return b"b" * reply_bytes


def gate(word: str) -> None:
    """Print a marker, and wait until the clocks are read."""
    print("hushbid-bench", word, flush=True)
    sys.stdin.readline()


def main() -> None:
    """Start the cluster, and run the rounds."""
    from distributed import Client, LocalCluster

    owners, rounds, warm_up, broadcast_bytes, reply_bytes = map(int, sys.argv[1:])
    broadcast = b"w" * broadcast_bytes
    cluster = LocalCluster(  # type: ignore[no-untyped-call]
        n_workers=owners, threads_per_worker=1, processes=True, dashboard_address=None
    )
    with cluster, Client(cluster) as client:  # type: ignore[no-untyped-call]
        client.wait_for_workers(owners)

        def scatter_gather(times: int) -> None:
            for _ in range(times):
                replies = client.run(answer, broadcast, reply_bytes)
                if [len(reply) for reply in replies.values()] != [reply_bytes] * owners:
                    raise RuntimeError("not every owner answered with as many bytes as it should")

        scatter_gather(warm_up)
        gate(f"ready {version('distributed')}")
        scatter_gather(rounds)
        gate("done")


if __name__ == "__main__":
    main()
