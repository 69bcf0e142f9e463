"""Differences of two environments: all except libraries that only one process has loaded."""

from __future__ import annotations

from hushbid.protocol.transcript.environment import environment_differences, environment_fingerprint
from hushbid.protocol.wire.values import Value


def names(key: str) -> tuple[str, ...]:
    found = environment_fingerprint()[key]
    assert isinstance(found, tuple)
    return tuple(str(name) for name in found)


def differing(**changes: Value) -> list[str]:
    return list(environment_differences({**environment_fingerprint(), **changes}))


def test_an_environment_does_not_differ_from_itself() -> None:
    assert environment_differences(environment_fingerprint()) == {}


def test_each_key_that_is_another_is_told_with_both_values() -> None:
    assert differing(numpy="0.1", python="another") == ["numpy", "python"]
    found = environment_differences({**environment_fingerprint(), "numpy": "0.1"})
    assert found == {"numpy": {"recorded": "0.1", "here": environment_fingerprint()["numpy"]}}
    assert differing(newer="a key of a later version") == ["newer"]


def test_a_library_that_only_one_process_has_loaded_is_no_difference_and_another_one_is() -> None:
    assert differing(blas=(*names("blas"), "openblas 9.9 Elsewhere")) == []
    assert differing(blas=()) == []
    assert differing(blas=("openblas 9.9 Elsewhere",)) == ["blas"]


def test_a_processor_with_fewer_features_is_another() -> None:
    assert len(names("cpu")) > 1
    assert differing(cpu=names("cpu")[:-1]) == ["cpu"]
    assert differing(cpu=(*names("cpu"), "ANOTHER")) == ["cpu"]
