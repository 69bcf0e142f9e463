"""Rounds of gRPC: one server process per owner, and one client that calls all of them concurrently.

The server is that of gRPC's quick start for Python. The client uses `asyncio` and unary calls, as gRPC's
performance guide advises: Python's streams and `future` start threads. The message is protobuf's own
``BytesValue``, so that no code has to be generated; generated stubs make the same calls. There is no TLS.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
from concurrent import futures

SERVICE, METHOD = "hushbid.bench.Peer", "Answer"


def serve(reply_bytes: int) -> None:
    """Act as an owner: answer every call until stdin ends."""
    import grpc
    from google.protobuf.wrappers_pb2 import BytesValue

    reply = b"b" * reply_bytes

    def answer(_broadcast: BytesValue, _context: grpc.ServicerContext) -> BytesValue:
        return BytesValue(value=reply)

    handler = grpc.unary_unary_rpc_method_handler(
        answer, request_deserializer=BytesValue.FromString, response_serializer=BytesValue.SerializeToString
    )
    server = grpc.server(futures.ThreadPoolExecutor(max_workers=1))
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, {METHOD: handler}),))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    print(port, flush=True)
    sys.stdin.read()
    server.stop(None).wait()


async def ask(ports: list[str], rounds: int, warm_up: int, broadcast_bytes: int, reply_bytes: int) -> None:
    """Act as the client: one channel to each owner, kept through all rounds."""
    import grpc
    from google.protobuf.wrappers_pb2 import BytesValue

    channels = [grpc.aio.insecure_channel(f"127.0.0.1:{port}") for port in ports]
    calls = [
        channel.unary_unary(
            f"/{SERVICE}/{METHOD}",
            request_serializer=BytesValue.SerializeToString,
            response_deserializer=BytesValue.FromString,
        )
        for channel in channels
    ]
    broadcast = b"w" * broadcast_bytes

    async def scatter_gather(times: int) -> None:
        for _ in range(times):
            message = BytesValue(value=broadcast)
            replies = await asyncio.gather(*(call(message) for call in calls))
            if any(len(reply.value) != reply_bytes for reply in replies):
                raise RuntimeError("not every owner answered with as many bytes as it should")

    await scatter_gather(warm_up)
    gate(f"ready {grpc.__version__}")
    await scatter_gather(rounds)
    gate("done")
    for channel in channels:
        await channel.close()


def gate(word: str) -> None:
    """Print a marker, and wait until the clocks are read."""
    print("hushbid-bench", word, flush=True)
    sys.stdin.readline()


def main() -> None:
    """Start the owners, and run the rounds."""
    owners, rounds, warm_up, broadcast_bytes, reply_bytes = map(int, sys.argv[1:])
    command = [sys.executable, "-P", __file__, "serve", str(reply_bytes)]
    servers: list[subprocess.Popen[str]] = []
    try:
        for _ in range(owners):
            servers.append(
                subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            )
        ports = [str(server.stdout and server.stdout.readline()).strip() for server in servers]
        asyncio.run(ask(ports, rounds, warm_up, broadcast_bytes, reply_bytes))
    finally:
        for server in servers:
            server.communicate()


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve(int(sys.argv[2]))
    else:
        main()
