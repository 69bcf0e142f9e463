"""Scripts that make rounds with a peer's library, as its documentation shows, and with nothing of hushbid.

Each is run on its own, by the Python of an environment that has the library (`hushbid.evidence.bench.peers`):

    python -P SCRIPT OWNERS ROUNDS WARM_UP BROADCAST_BYTES REPLY_BYTES

In a round one message goes to each of the owners, and one comes back from each. After WARM_UP rounds the
script prints ``hushbid-bench ready`` with the library's version, and waits for a line. Then it makes ROUNDS
rounds, prints ``hushbid-bench done``, waits for a line, and ends. While it waits its processes are idle, and
whoever started it reads their clocks. The library is imported where it is used: every module of
hushbid can be imported, whatever is installed.
"""
