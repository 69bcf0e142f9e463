"""``python -P -m tests.support.forked_probe WHAT``: what a forked process shows, and ways to end."""

from __future__ import annotations

import gc
import json
import os
import random
import secrets
import signal
import sys
import threading
import time
import uuid
from typing import Any, NoReturn

import nacl.utils
import numpy as np

from hushbid.protocol import platform
from hushbid.protocol.errors import DataError
from hushbid.protocol.privacy.noise import Draw, SecureNoise
from hushbid.protocol.runtime.interrupts import run_main
from hushbid.protocol.runtime.keys import new_keypair


def shown() -> dict[str, Any]:
    """The process by its own account and by the system's."""
    with open("/proc/self/environ", encoding="utf-8") as file:
        environment = file.read().split("\0")
    return {
        "arguments": sys.argv[1:],
        "directory": os.getcwd(),
        "environment": dict(os.environ),
        "system_environment": environment,
        "descriptors": descriptors(),
        "tasks": len(os.listdir("/proc/self/task")),
        "modules": sorted(sys.modules),
        "group": os.getpgid(0) == os.getpid(),
        "path": sys.path,
        "child_signal": signal.getsignal(signal.SIGCHLD) == signal.SIG_DFL,
        "interrupt": signal.getsignal(signal.SIGINT) == signal.default_int_handler,
        "collecting": gc.isenabled(),
        "main": sys.modules["__main__"].__spec__.name if sys.modules["__main__"].__spec__ else None,
    }


def descriptors() -> dict[int, str]:
    """Open descriptors by number, without the list's own."""
    found = {}
    for name in os.listdir("/proc/self/fd"):
        try:
            found[int(name)] = os.readlink(f"/proc/self/fd/{name}")
        except FileNotFoundError:
            continue
    return found


def drawn() -> dict[str, Any]:
    """A draw of every generator that may be used here; `control` is of the memory that forks share."""
    noise = SecureNoise()
    return {
        "control": hash("shared"),
        "secrets": secrets.token_hex(16),
        "os": os.urandom(16).hex(),
        "random": random.getrandbits(128),
        "uuid": uuid.uuid4().hex,
        "sodium": nacl.utils.random(16).hex(),
        "key": new_keypair().public.text,
        "numpy": np.random.default_rng().integers(2**62).item(),
        "numpy, global": np.random.randint(2**62),  # noqa: NPY002 - it is looked at, and used for nothing
        "gaussian noise": noise.draw(Draw("discrete-gaussian", 1e9, 4)).tolist(),
        "laplace noise": noise.draw(Draw("discrete-laplace", 1e9, 4)).tolist(),
        "bytes of noise": noise.random_bytes(16).hex(),
    }


def failing() -> NoReturn:
    """Raise an error that a person can act on."""
    raise DataError("No row is left.", advice="Keep some.")


def broken() -> NoReturn:
    """Raise another error."""
    raise ZeroDivisionError("a bug")


def killed() -> NoReturn:
    """End like a process that the system kills."""
    os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(60.0)
    raise AssertionError("it lives")


def process() -> tuple[int, bool]:
    """The process, and whether scikit-learn is imported."""
    return os.getpid(), "sklearn" in sys.modules


def main() -> NoReturn:
    what = sys.argv[1]
    if what in ("shown", "drawn"):
        sys.stdout.write(json.dumps(shown() if what == "shown" else drawn()))
        sys.exit()
    if what == "lock":
        descriptor = platform.open_file(sys.argv[2], os.O_RDWR | os.O_CREAT)
        platform.lock(descriptor)
        _wait()
    if what == "wait":
        _wait()
    sys.exit(int(what))


def _wait() -> NoReturn:
    sys.stdout.write("here")
    sys.stdout.flush()
    threading.Event().wait()
    sys.exit()


if __name__ == "__main__":
    run_main(main)
