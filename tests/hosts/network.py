"""Hosts with addresses of their own, and a network between them that delays, loses and cuts.

A host is a network namespace. Its only way out is a TUN device, whose other end is `Network`: a thread that
takes IP packets and delivers them, later or not at all. The kernels' own ``tc netem`` is not built into all
of them; this needs only TUN, loses packets by a seed, counts them, and can cut one direction. TCP sees what
it would see on a wire.
"""

from __future__ import annotations

import contextlib
import fcntl
import heapq
import ipaddress
import itertools
import os
import random
import select
import shutil
import struct
import subprocess
import threading
import time
from pathlib import Path
from typing import Self

__all__ = ["NAMESPACES", "Host", "Network", "why_no_network"]

NAMESPACES = Path("/run/netns")
"""Where ip keeps one namespace a file."""

_TUNSETIFF = 0x400454CA
_IFF_TUN, _IFF_NO_PI = 0x0001, 0x1000
_PACKET = 65_535
_LOOK = 0.005
_NAMES = itertools.count()


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True, text=True)


def why_no_network() -> str | None:
    """What this machine lacks; None if nothing."""
    if os.geteuid() != 0:
        return "network namespaces need root"
    if shutil.which("ip") is None:
        return "needs the command ip (iproute2)"
    if not Path("/dev/net/tun").exists():
        return "needs /dev/net/tun"
    _sweep()
    try:
        Host("10.77.0.99", "fd77::99").close()
    except (OSError, subprocess.CalledProcessError) as error:
        return f"cannot make a network namespace with a TUN device: {getattr(error, 'stderr', error)}"
    return None


def _sweep() -> None:
    """Remove what a killed run has left."""
    for left in NAMESPACES.glob("hushbid-*-*"):
        if not Path("/proc", left.name.split("-")[1]).exists():
            _ip("netns", "delete", left.name)


class Host:
    """A network namespace with one device, which has an address of either family.

    Attributes:
        v4, v6: Its addresses.
        namespace: Its name, a file of `NAMESPACES`.
        device: A file descriptor: read what the host sends, write what it receives.
    """

    def __init__(self, v4: str, v6: str) -> None:
        self.v4, self.v6 = v4, v6
        number = next(_NAMES)
        self.namespace = f"hushbid-{os.getpid()}-{number}"
        name = f"hb{os.getpid() % 10**6}x{number}"
        self.device = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            fcntl.ioctl(self.device, _TUNSETIFF, struct.pack("16sH22x", name.encode(), _IFF_TUN | _IFF_NO_PI))
            _ip("netns", "add", self.namespace)
            _ip("link", "set", name, "netns", self.namespace)
            _ip("-n", self.namespace, "address", "add", f"{v4}/24", "dev", name)
            _ip("-n", self.namespace, "address", "add", f"{v6}/64", "dev", name, "nodad")
            _ip("-n", self.namespace, "link", "set", name, "up")
            _ip("-n", self.namespace, "link", "set", "lo", "up")
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Remove it with its device: whatever still runs in it has no network any more."""
        os.close(self.device)
        with contextlib.suppress(subprocess.CalledProcessError):  # it was not made
            _ip("netns", "delete", self.namespace)


class Network:
    """Hosts and what carries packets between them. Leaving it removes all of them.

    Args:
        delay: Seconds that every packet takes.
        loss: Share of packets that are lost, independently.
        seed: Seed of the losses.

    Attributes:
        lost: Packets lost by chance.
    """

    def __init__(self, *, delay: float, loss: float, seed: int = 0) -> None:
        self.lost = 0
        self._delay, self._loss = delay, loss
        self._chance = random.Random(seed)
        self._hosts: dict[str, Host] = {}
        self._deaf: set[str] = set()
        self._mute: set[str] = set()
        self._number = itertools.count(1)
        self._lock = threading.Lock()
        self._closing = False
        self._thread = threading.Thread(target=self._carry, daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._closing = True
        self._thread.join()
        for host in self._hosts.values():
            host.close()

    def host(self, name: str) -> Host:
        """The host of that name, made on first request."""
        if name not in self._hosts:
            number = next(self._number)
            made = Host(f"10.77.0.{number}", f"fd77::{number:x}")
            with self._lock:
                self._hosts[name] = made
        return self._hosts[name]

    def replace(self, name: str) -> None:
        """Cut a host's power, and bring it back with its addresses but without its connections."""
        with self._lock:
            old = self._hosts.pop(name)
        old.close()
        made = Host(old.v4, old.v6)
        with self._lock:
            self._hosts[name] = made

    def cut(self, name: str, *, sends: bool = True, receives: bool = True) -> None:
        """Block what a host sends, or receives."""
        with self._lock:
            (self._mute.add if sends else self._mute.discard)(name)
            (self._deaf.add if receives else self._deaf.discard)(name)

    def heal(self, name: str) -> None:
        """Let everything through again."""
        with self._lock:
            self._mute.discard(name)
            self._deaf.discard(name)

    def _carry(self) -> None:
        under_way: list[tuple[float, int, str, bytes]] = []
        order = itertools.count()
        while not self._closing:
            with self._lock:
                due = time.monotonic() + self._delay
                for receiver, packet in itertools.chain(*map(self._sent, self._hosts)):
                    heapq.heappush(under_way, (due, next(order), receiver, packet))
                while under_way and under_way[0][0] <= time.monotonic():
                    _, _, receiver, packet = heapq.heappop(under_way)
                    self._hand_over(receiver, packet)
                devices = [host.device for host in self._hosts.values()]
            # Until something is sent or due; and a host that is added meanwhile is not kept waiting.
            due = under_way[0][0] - time.monotonic() if under_way else _LOOK
            with contextlib.suppress(OSError):  # a device was closed just now
                select.select(devices, [], [], min(max(due, 0.0), _LOOK))

    def _sent(self, sender: str) -> list[tuple[str, bytes]]:
        """The packets that a host has sent, without lost ones, and their receivers."""
        kept = []
        with contextlib.suppress(BlockingIOError):
            while True:
                packet = os.read(self._hosts[sender].device, _PACKET)
                receiver = self._receiver(packet)
                if receiver is None or sender in self._mute:
                    continue
                if self._chance.random() < self._loss:
                    self.lost += 1
                else:
                    kept.append((receiver, packet))
        return kept

    def _receiver(self, packet: bytes) -> str | None:
        where = packet[24:40] if packet[0] >> 4 == 6 else packet[16:20]
        address = str(ipaddress.ip_address(where))
        return next((name for name, host in self._hosts.items() if address in (host.v4, host.v6)), None)

    def _hand_over(self, receiver: str, packet: bytes) -> None:
        host = self._hosts.get(receiver)
        if host is not None and receiver not in self._deaf:
            with contextlib.suppress(OSError):  # its device is full, or not up yet
                os.write(host.device, packet)
