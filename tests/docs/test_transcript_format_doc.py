"""docs/transcript-format.md has what a record can hold; its tables have an example of each kind."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, get_args

from hushbid.protocol.config.session import NetworkSection, NoiseSection, SessionFile, TimeoutSection
from hushbid.protocol.machine.machine import Computation, Effect, Event, Received
from hushbid.protocol.privacy.accounting import Cost
from hushbid.protocol.runtime.keys import new_keypair
from hushbid.protocol.transcript.session_file import started
from tests.docs.pages import Page, names_in
from tests.docs.tables.protocol import COSTS, EXAMPLES, SESSION
from tests.support.handlers import TABLES
from tests.support.message_cases import CASES

PAGE = Page("docs/transcript-format.md")


def recorded(base: type[Event | Effect]) -> Iterator[type[Event | Effect]]:
    """Every event and effect in the source that can be recorded."""
    for kind in base.__subclasses__():
        if kind.__module__.startswith("hushbid."):
            if hasattr(kind, "KIND"):
                yield kind
            yield from recorded(kind)


def test_every_kind_of_event_and_effect_has_an_example() -> None:
    kinds = {
        kind.KIND for base in (Event, Effect) for kind in recorded(base) if not issubclass(kind, Computation)
    }
    assert kinds == {example.KIND for example in EXAMPLES}
    outcomes = {kind.KIND for table in TABLES.values() for kind in table.outcomes}
    assert outcomes <= kinds


def test_every_kind_of_cost_has_an_example() -> None:
    assert {type(example) for example in COSTS} == set(get_args(Cost))


def test_the_keys_of_a_frame_are_listed() -> None:
    keys = PAGE.first_names("Events and effects")[len(EXAMPLES) :]
    frame = Received("owner-0", 1, 1, b"as it came", CASES["bid-sealed"].message).item().private["frame"]
    assert isinstance(frame, dict)
    assert keys == list(frame)


def test_the_seeds_are_those_that_are_named() -> None:
    named = [name for name in names_in(PAGE.text) if name.endswith(".seed")]
    assert sorted(f"{section}.seed" for section in started(SESSION).seeds) == sorted(named)


FILE: dict[str, dict[str, Any]] = {
    "session": {"name": "least", "points": 4},
    "features": {"gamma": 0.5, "columns": 3},
    "target": {"mechanism": "mwem", "epsilon": 1.0, "neighbours": "substitute-one"},
    "acquisition": {"rule": "tender"},
    "roster": {"curator": "", "consumer": "", "owners": {"heron": ""}},
}
"""As few keys as a session file can have; the keys of parties are put in."""


def test_the_defaults_that_are_written_out_are_listed() -> None:
    keys = new_keypair().public.text, new_keypair().public.text, new_keypair().public.text
    roster = {"curator": keys[0], "consumer": keys[1], "owners": {"heron": keys[2]}}
    file = SessionFile.model_validate({**FILE, "roster": roster})
    found = started(file).configuration
    listed: dict[str, list[str]] = {}
    for tables, what in PAGE.rows("The session file on record"):
        for name in names_in(tables):
            listed.setdefault(name, [each for each in names_in(what) if each.isidentifier()])
    written = {table: [key for key in found[table] if key not in FILE.get(table, {})] for table in found}
    for table in ("session", "features"):
        assert sorted(written[table]) == sorted(set(listed[table]) - {"tender"}), table
    assert written["target"] == written["acquisition"] == written["roster"] == []
    for table, section in (
        ("noise", NoiseSection),
        ("network", NetworkSection),
        ("timeouts", TimeoutSection),
    ):
        with_default = {name for name, field in section.model_fields.items() if field.default is not None}
        assert set(written[table]) == with_default, table
    assert set(written["summary"]) == {"mechanism", "epsilon", "neighbours"}
    assert not {"settlement", "wishes", "labels", "columns"} & set(found)
    assert {"settlement", "wishes", "labels", "columns"} <= set(listed)
