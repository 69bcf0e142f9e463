"""docs/protocol.md draws what the transition tables say."""

from __future__ import annotations

import re

import pytest

from consumer.machine import ConsumerMachine
from curator.machine import CuratorMachine
from hushbid.diagrams import mermaid
from owner.machine import OwnerMachine
from protocol.acquisition import RULES
from protocol.config.session import TimeoutSection
from protocol.errors import Offence
from protocol.machine import Event, Machine, Transition
from protocol.messages import Message
from tests.conftest import ROOT

TEXT = (ROOT / "docs" / "protocol.md").read_text(encoding="utf-8")
DIAGRAMS = dict(re.findall(r"### (\w+)'s phases\n.*?```mermaid\n(.*?)\n```", TEXT, re.DOTALL))
MACHINES: dict[str, type[Machine]] = {
    "Curator": CuratorMachine,
    "Owner": OwnerMachine,
    "Consumer": ConsumerMachine,
}


@pytest.mark.parametrize("role", MACHINES)
def test_the_diagram_is_the_table(role: str) -> None:
    assert DIAGRAMS[role] == mermaid(MACHINES[role]), (
        f"docs/protocol.md, {role}'s phases: paste what hushbid.diagrams.mermaid gives"
    )


def test_a_changed_table_changes_the_diagram() -> None:
    class Small(Machine):
        PHASES = ("a", "b")
        TRANSITIONS = (
            Transition("a", "received:hello", "_handle", ("a", "b")),
            Transition("a", "timer:enrolment", "_handle", ("b",)),
        )

        def _handle(self, event: Event) -> None:
            pass

    assert mermaid(Small).splitlines() == [
        "stateDiagram-v2",
        "    [*] --> a",
        "    a --> a: received hello",
        "    a --> b: received hello, timer enrolment",
        "    b --> [*]",
    ]


@pytest.mark.parametrize("message", [cls.model_fields["kind"].default for cls in Message.__subclasses__()])
def test_every_message_is_explained(message: str) -> None:
    assert f"| `{message}` |" in TEXT


@pytest.mark.parametrize("rule", sorted(RULES))
def test_every_acquisition_rule_is_explained(rule: str) -> None:
    assert f"| `{rule}` |" in TEXT


@pytest.mark.parametrize("timeout", sorted(TimeoutSection.model_fields))
def test_every_timeout_is_explained(timeout: str) -> None:
    default = TimeoutSection.model_fields[timeout].default
    assert f"| `{timeout}` | {default:g} |" in TEXT


@pytest.mark.parametrize("offence", sorted(Offence))
def test_every_offence_is_explained(offence: Offence) -> None:
    assert f"| `{offence.value}` |" in TEXT
