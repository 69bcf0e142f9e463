"""Rounds of Dask: `Client.run` on a local cluster with a worker, a process of one thread, for each owner.

`Client.run` hands a function with its arguments to all workers and gathers what they return. The dashboard is
left out, and so is the state that it would compute.
"""

from __future__ import annotations

import sys
from importlib.metadata import version


def answer(_broadcast: bytes, reply_bytes: int) -> bytes:
    """What an owner does in a round."""
    return b"b" * reply_bytes


def gate(word: str) -> None:
    """Say where this is, and wait until the clocks are read."""
    print("hushbid-bench", word, flush=True)
    sys.stdin.readline()


def main() -> None:
    """Start the cluster, and make the rounds."""
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
