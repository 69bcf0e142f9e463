"""Rounds of Flower's simulation engine: one virtual SuperNode per owner, run by Ray actors.

A `ServerApp` sends a message to each node and waits for all replies (`Grid.send_and_receive`), as Flower's
guide to its message API shows. An actor has one processor, so as many owners answer at once as there are
processors. `run_simulation` starts the engine; later versions of Flower leave that to `flwr run`.
"""

from __future__ import annotations

import sys
import time
from importlib.metadata import version

RECORD = "frame"
BETWEEN_LOOKS = 0.1


def gate(word: str) -> None:
    """Print a marker, and wait until the clocks are read."""
    print("hushbid-bench", word, flush=True)
    sys.stdin.readline()


def main() -> None:
    """Start the simulation, and run the rounds."""
    from flwr.app import ConfigRecord, Context, Message, RecordDict
    from flwr.clientapp import ClientApp
    from flwr.serverapp import Grid, ServerApp
    from flwr.simulation import run_simulation

    owners, rounds, warm_up, broadcast_bytes, reply_bytes = map(int, sys.argv[1:])
    client, server = ClientApp(), ServerApp()

    def framed(content: bytes) -> RecordDict:
        """A message's content: one field of bytes."""
        return RecordDict({RECORD: ConfigRecord({RECORD: content})})

    @client.query()
    def answer(message: Message, _context: Context) -> Message:
        return Message(framed(b"b" * reply_bytes), reply_to=message)

    @server.main()
    def rounds_of(grid: Grid, _context: Context) -> None:
        while len(nodes := list(grid.get_node_ids())) < owners:
            time.sleep(BETWEEN_LOOKS)
        broadcast = b"w" * broadcast_bytes

        def scatter_gather(times: int) -> None:
            for _ in range(times):
                replies = grid.send_and_receive([Message(framed(broadcast), node, "query") for node in nodes])
                sizes = [len(reply.content[RECORD][RECORD]) for reply in replies if not reply.has_error()]
                if sizes != [reply_bytes] * owners:
                    raise RuntimeError("not every owner answered with as many bytes as it should")

        scatter_gather(warm_up)
        gate(f"ready {version('flwr')}")
        scatter_gather(rounds)
        gate("done")

    run_simulation(
        server_app=server,
        client_app=client,
        num_supernodes=owners,
        backend_config={
            "client_resources": {"num_cpus": 1, "num_gpus": 0.0},
            "init_args": {"log_to_driver": False, "include_dashboard": False},
        },
    )


if __name__ == "__main__":
    main()
