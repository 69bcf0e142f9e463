"""hushbid in a notebook's own kernel: TAB, the bar, short forms and HTML of results, and interruption."""

from __future__ import annotations

from collections.abc import Iterator
from html import unescape
from typing import Any

import pytest
from jupyter_client.blocking.client import BlockingKernelClient
from jupyter_client.manager import KernelManager

SECONDS = 120
BEGIN = """
import hushbid
ROUNDS = {
    "session.points": 20,
    "session.batch": 5,
    "acquisition.rule": "sealed",
    "summary.mechanism": "filtered-gaussian",
    "summary.epsilon": 1.0,
    "summary.neighbours": "add-remove-one",
}
cluster = hushbid.open_cluster("digits", settings=ROUNDS)
"""


class Kernel:
    """A kernel that cells are run in."""

    def __init__(self, manager: KernelManager, client: BlockingKernelClient) -> None:
        self.manager, self.client = manager, client

    def ends(self, cell: str) -> list[dict[str, Any]]:
        """What a cell shows, in order; each has `kind`, the type of its message."""
        return self.told(self.client.execute(cell))

    def told(self, asked: str, until: str = "") -> list[dict[str, Any]]:
        """What a cell shows until it has ended, or until a message of this type has come."""
        found: list[dict[str, Any]] = []
        while True:
            message = self.client.get_iopub_msg(timeout=SECONDS)
            if message["parent_header"].get("msg_id") != asked:
                continue
            if message["msg_type"] == "status" and message["content"]["execution_state"] == "idle":
                return found
            found.append({"kind": message["msg_type"], **message["content"]})
            if until == message["msg_type"]:
                return found

    def completed(self, text: str) -> list[str]:
        """TAB's offers at the end of the text."""
        reply: Any = self.client.complete(text, reply=True, timeout=SECONDS)
        matches: list[str] = reply["content"]["matches"]
        return matches


@pytest.fixture(scope="module")
def kernel() -> Iterator[Kernel]:
    manager = KernelManager(kernel_name="python3")
    manager.start_kernel()
    client = manager.blocking_client()
    client.start_channels()
    try:
        client.wait_for_ready(timeout=SECONDS)
        made = Kernel(manager, client)
        assert not [each for each in made.ends(BEGIN) if each["kind"] == "error"]
        yield made
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


def test_tab_finds_what_there_is(kernel: Kernel) -> None:
    assert "simulate" in kernel.completed("hushbid.sim")
    offered = kernel.completed("cluster.")
    assert {"owners", "schema"} <= set(offered)
    assert not any(each.startswith("_") for each in offered)


def test_a_session_shows_a_bar_and_then_its_judgement(kernel: Kernel) -> None:
    told = kernel.ends("result = hushbid.simulate(cluster)\nresult")
    assert not [each for each in told if each["kind"] in ("error", "stream")]
    first, *bars = [each for each in told if each["kind"] in ("display_data", "update_display_data")]
    assert first["kind"] == "display_data"
    assert {each["kind"] for each in bars} == {"update_display_data"}, "one bar, and nothing beside it"
    assert '<progress value="4" max="4">' in bars[-1]["data"]["text/html"]
    [shown] = [each["data"] for each in told if each["kind"] == "execute_result"]
    assert shown["text/plain"].startswith("<RunResult of 'digits': 20 of 20 points of 5 owners")
    sentences = kernel.ends("print(*result.sentences, sep='\\n')")[-1]["text"].splitlines()
    assert len(sentences) == 2
    page = " ".join(unescape(shown["text/html"]).split())  # its lines are broken at 100 characters
    assert all(" ".join(sentence.split()) in page for sentence in sentences)


def test_a_session_that_is_interrupted_ends_and_the_kernel_goes_on(kernel: Kernel) -> None:
    """As with the stop button: by SIGINT to the kernel."""
    cell = "hushbid.simulate(hushbid.open_cluster('digits', settings={**ROUNDS, 'session.points': 900}))"
    asked = kernel.client.execute(cell)
    told = kernel.told(asked, until="update_display_data")
    assert "round " in told[-1]["data"]["text/html"]
    kernel.manager.interrupt_kernel()
    errors = [each for each in kernel.told(asked) if each["kind"] == "error"]
    assert [each["ename"] for each in errors] == ["KeyboardInterrupt"]
    assert kernel.ends("1 + 1")[-1]["data"]["text/plain"] == "2"
