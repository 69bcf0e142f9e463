"""Input by which a key holder made libzmq 4.3.5 abort the curator, each in a process of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

DEADLINE_S = 60.0
ROOT = Path(__file__).resolve().parents[2]

PINGED_AND_HUNG_UP_ON = """
import time
from hushbid.protocol.runtime.keys import new_keypair
from hushbid.protocol.runtime.network.router import RouterEndpoint
from tests.processes.curve import CurvePeer

curator, alice, bob = (new_keypair() for _ in range(3))
roster = {alice.public.text: "alice", bob.public.text: "bob"}
with RouterEndpoint("tcp://127.0.0.1:*", pair=curator, roster=roster) as router:
    port = int(router.address.rpartition(":")[2])
    for frames in range(6, 20):
        with CurvePeer(port, curator.public, alice) as peer:
            said = [peer.message(b"%d" % number) for number in range(frames)]
            peer.write(b"".join([*said, peer.message(b"\\4PING\\0\\0", command=True)]))
            time.sleep(0.05)
            peer.reset()
        time.sleep(0.05)
        while router.receive(1000, wait_ms=20):
            pass
    with CurvePeer(port, curator.public, bob) as peer:
        peer.write(peer.message(b"hello"))
        while "bob" not in [arrival.peer for arrival in router.receive(1000, wait_ms=10_000)]:
            pass  # what was left of alice's
        print("bob")
"""


def test_a_peer_that_pings_and_hangs_up_ends_nobody() -> None:
    # libzmq aborted where it answered a PING on a connection that was lost while its queue was full.
    command = [sys.executable, "-c", PINGED_AND_HUNG_UP_ON]
    done = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S, check=False, cwd=ROOT)
    assert (done.returncode, done.stdout, done.stderr) == (0, "bob\n", "")


FIRST_ROUTE = """
import zmq
from hushbid.protocol.runtime.network.router import RouterEndpoint

with (
    RouterEndpoint("tcp://127.0.0.1:*", pair=None, roster={}) as router,
    zmq.Context() as context,
    context.socket(zmq.DEALER) as dealer,
):
    dealer.connect(router.address)
    dealer.send(b"hello")
    print(router.receive(1, wait_ms=10_000)[0].route.hex())
"""


def test_nobody_can_know_where_routing_ids_begin() -> None:
    # libzmq aborts where a peer has claimed the id of the next connection, and gives a lost peer's frames to
    # who has claimed its id. It takes the first from C's rand, which it does not seed: 1804289383.
    command = [sys.executable, "-c", FIRST_ROUTE]
    said = [
        subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S, check=True, cwd=ROOT)
        for _ in range(3)
    ]
    routes = {done.stdout for done in said}
    assert len(routes) == 3, "two of three are equal once in 10^9"
