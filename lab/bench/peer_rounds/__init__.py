"""Scripts that run rounds with another library as its documentation shows, without any of hushbid.

Each runs alone, in an environment that has the library (`hushbid.lab.bench.peers`):

    python -P SCRIPT OWNERS ROUNDS WARM_UP BROADCAST_BYTES REPLY_BYTES

In a round each owner gets one message and returns one. After WARM_UP rounds the script prints ``hushbid-bench
ready`` with the library's version, and waits for a line. Then it makes ROUNDS rounds, prints ``hushbid-bench
done``, waits for a line, and ends. While it waits, its processes are idle, and the process that started it
reads their clocks. The library is imported in functions, so that every module can be imported without it.
"""
