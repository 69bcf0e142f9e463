"""The image that the tests of containers start, built once for all of them."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.containers.compose import Deployment, clean_clone, why_no_engine
from tests.support.sources import copied


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A clean clone on a machine that has the image built from it."""
    reason = why_no_engine()
    if reason is not None:
        pytest.skip(reason)
    with one_at_a_time():
        if not (built := built_of_this_run(tmp_path_factory)).exists():
            _build(tmp_path_factory.mktemp("built"))
            built.touch()
    clone = tmp_path_factory.mktemp("clone")
    copied(clone)
    return clone


def built_of_this_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A marker that the image is the tree's: one of a run's processes builds for all."""
    base = tmp_path_factory.getbasetemp()
    return (base.parent if base.name.startswith("popen-") else base) / "image-is-built"


def _build(place: Path) -> None:
    """Build the image on a machine that has the base image and the wheelhouse, from a clean clone."""
    made = make("base-image")
    if made.returncode != 0:
        pytest.skip(f"no base image: {made.stderr.strip()[-300:]}")
    fetched = make("wheelhouse")
    assert fetched.returncode == 0, fetched.stderr
    with Deployment(clean_clone(place)) as deployment:
        built = deployment.compose("build", "setup")
    assert built.returncode == 0, built.stdout[-2000:] + built.stderr[-2000:]
    shutil.rmtree(place / "wheelhouse")  # it is large, and the image has what it needs


@contextmanager
def one_at_a_time() -> Iterator[None]:
    """Hold the right to build. Files are tested in parallel, even in several clones."""
    with Path(tempfile.gettempdir(), f"hushbid-test-image-{os.getuid()}").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def make(target: str) -> subprocess.CompletedProcess[str]:
    # `timeout` ends all that make has started, and so the pipes that are read here.
    command = ["timeout", "--kill-after=10", "240", "make", "--silent", target]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
