"""A catalogue entry: it is read back as written, and refused by the file's name if it is false."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgpack
import numpy as np
import pytest

from hushbid.catalogue.entry import TAG, CatalogueEntry, read_entry, signed_entry
from hushbid.catalogue.kme import KmeRelease
from hushbid.catalogue.model import decode_part, encode_part
from hushbid.catalogue.race import RaceEntry
from hushbid.protocol import limits
from hushbid.protocol.config.session import FeatureSection
from hushbid.protocol.crypto.sealing import SIGNATURE_BYTES, sign
from hushbid.protocol.errors import ConfigError, DataError
from hushbid.protocol.privacy.accounting import cost_from_record, epsilon_of
from hushbid.protocol.privacy.noise import SimulatedNoise
from hushbid.protocol.privacy.releases import Neighbours
from hushbid.protocol.space.features import feature_map
from hushbid.protocol.space.grid import FEATURE_UNIT
from tests.support.catalogue_entries import FEATURES, HASHES, key_of, points_about, published

Change = Callable[[dict[str, Any]], None]


def rewritten(path: Path, change: Change) -> None:
    """Change an entry's statements, and sign it with its owner's key: a lying owner."""
    content = path.read_bytes()
    values = decode_part(content[len(TAG) + SIGNATURE_BYTES :])
    change(values)
    body = encode_part(values)
    path.write_bytes(TAG + sign(TAG + body, key_of("north").signing) + body)


@pytest.mark.parametrize("functions", [FEATURES, HASHES], ids=["kme", "race"])
@pytest.mark.parametrize("neighbours", list(Neighbours))
def test_an_entry_is_read_as_it_was_written(
    tmp_path: Path, functions: FeatureSection, neighbours: Neighbours
) -> None:
    made = published(tmp_path, functions=functions, neighbours=neighbours)
    read = read_entry(made.path)
    assert encode_part(read) == encode_part(made.entry)
    assert read.key == key_of("north").public
    assert read.file_name() == made.path.name
    assert read.epsilon <= 1.0
    assert epsilon_of([cost_from_record(cost) for cost in read.costs], 1e-5) == pytest.approx(read.epsilon)


def test_a_kme_entry_holds_the_mean_of_the_features_up_to_its_noise(tmp_path: Path) -> None:
    made = published(tmp_path, neighbours=Neighbours.SUBSTITUTE_ONE, epsilon=50.0)
    points = np.load(tmp_path / "north.npy")
    phi = feature_map(
        "paired", seed=3, dimension=64, gamma=2.0, lower=0.0, upper=np.array([1.0, 2.0]), columns=2
    ).hash(points)
    release = made.entry.release
    assert isinstance(release, KmeRelease)
    found = release.noisy_mean()
    assert found.size == 400
    off = found.mean - phi.mean(axis=0) * FEATURE_UNIT
    # 64 normal deviates: their root mean square is within 0.65..1.35 but for a chance of 10^-4.
    assert 0.65 < np.sqrt(np.mean(off**2) / found.variance) < 1.35


def test_a_race_entry_holds_the_counts_up_to_its_noise(tmp_path: Path) -> None:
    made = published(
        tmp_path, functions=HASHES, neighbours=Neighbours.SUBSTITUTE_ONE, epsilon=2000.0, delta=0.0
    )
    release = made.entry.release
    assert isinstance(release, RaceEntry)
    # Noise of scale 0.06 is 0 but for one cell in 10^7.
    assert release.counts.sum() == 400 * 60
    assert made.entry.delta == 0.0


@pytest.mark.parametrize("functions", [FEATURES, HASHES], ids=["kme", "race"])
def test_the_size_is_exact_under_substitution_alone(tmp_path: Path, functions: FeatureSection) -> None:
    exact = published(tmp_path, functions=functions, neighbours=Neighbours.SUBSTITUTE_ONE)
    noisy = published(tmp_path, "south", functions=functions)
    assert (exact.entry.release.size, exact.entry.release.size_deviation) == (400, 0.0)
    assert noisy.entry.release.size != 400
    deviation = noisy.entry.release.size_deviation
    assert abs(noisy.entry.release.size - 400) < 6 * deviation
    # The number has a share of the entry's ε, and no free ride: the costs say so.
    assert read_entry(noisy.path).epsilon <= 1.0


def test_a_changed_byte_is_noticed_wherever_it_is(tmp_path: Path) -> None:
    path = published(tmp_path).path
    content = path.read_bytes()
    for place in range(0, len(content), 37):
        path.write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
        with pytest.raises(DataError, match=path.name):
            read_entry(path)


@pytest.mark.parametrize("length", [0, 10, len(TAG), len(TAG) + 30, len(TAG) + 200, -1])
def test_a_file_that_is_cut_off_is_refused(tmp_path: Path, length: int) -> None:
    path = published(tmp_path).path
    path.write_bytes(path.read_bytes()[:length])
    with pytest.raises(DataError, match=path.name):
        read_entry(path)


def test_another_version_is_named(tmp_path: Path) -> None:
    path = published(tmp_path).path
    path.write_bytes(path.read_bytes().replace(b"entry 2\n", b"entry 1\n", 1))
    with pytest.raises(DataError, match="another version") as caught:
        read_entry(path)
    assert "publish again" in caught.value.advice


def test_another_s_signature_is_refused(tmp_path: Path) -> None:
    made = published(tmp_path)
    body = encode_part(made.entry)
    made.path.write_bytes(TAG + sign(TAG + body, key_of("south").signing) + body)
    with pytest.raises(DataError, match="signature"):
        read_entry(made.path)
    with pytest.raises(ConfigError, match="key that it names"):
        signed_entry(made.entry, key_of("south"))


def test_a_file_that_is_too_long_or_not_there_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = published(tmp_path)
    monkeypatch.setattr(limits, "MAX_ENTRY_FILE_BYTES", 100)
    with pytest.raises(DataError, match="longer than 100"):
        read_entry(made.path)
    with pytest.raises(ConfigError, match="more than 100"):
        signed_entry(made.entry, key_of("north"))
    with pytest.raises(DataError, match="No such file"):
        read_entry(tmp_path / "nothing.entry")


def put(*place: str, value: Any) -> Change:
    """A change of the value at a place."""

    def change(values: dict[str, Any]) -> None:
        for name in place[:-1]:
            values = values[name]
        values[place[-1]] = value(values[place[-1]]) if callable(value) else value

    return change


def _halve_the_noise(values: dict[str, Any]) -> None:
    values["release"]["sigma"] /= 2.0


def _halve_the_noise_and_say_so(values: dict[str, Any]) -> None:
    _halve_the_noise(values)
    values["costs"] = tuple({**cost, "sigma": cost["sigma"] / 2.0} for cost in values["costs"])


KME_FAULTS: dict[str, tuple[Change, str]] = {
    "a smaller ε": (put("epsilon", value=0.5), "its noise gives"),
    "less noise than its costs": (_halve_the_noise, "costs that it states"),
    "less noise than its ε": (_halve_the_noise_and_say_so, "its noise gives"),
    "a smaller δ": (put("delta", value=1e-9), "its noise gives"),
    "pure ε": (put("delta", value=0.0), "its noise gives"),
    "another relation": (put("neighbours", value="substitute-one"), "number of points"),
    "an unknown relation": (put("neighbours", value="none"), "neighbours"),
    "another map": (put("release", "features", "seed", value=4), "digest"),
    "no seed": (put("release", "features", "seed", value=None), "public seed"),
    "an unknown map": (put("release", "features", "map", value="other"), "no feature map"),
    "another digest": (put("release", "digest", value=hashlib.sha256().digest()), "digest"),
    "another width": (put("release", "features", "dimension", value=66), "total is not"),
    "numbers of another type": (
        put("release", "total", value=lambda a: a.astype(np.float64)),
        "total is not",
    ),
    "an unknown kind": (put("release", "kind", value="other"), "release"),
    "an unknown kind that moves the cursor": (put("release", "kind", value="\x1b[2J"), r"\x1b[2j"),
    "an unknown key": (lambda values: values.update(more=1), "more"),
    "a missing key": (lambda values: values.pop("date"), "date"),
    "a name that no roster takes": (put("name", value="Nord"), "name"),
    "a key that is none": (put("owner", value="1" * 40), "key"),
    "column names of another number": (put("columns", value=("a", "b", "c")), "columns"),
    "points without weights": (
        lambda values: values["release"].update(points=np.zeros((3, 2))),
        "go together",
    ),
    "points out of bounds": (
        lambda values: values["release"].update(points=np.full((3, 2), 9.0), weights=np.full(3, 0.3)),
        "out of its public bounds",
    ),
    "weights that are too large": (
        lambda values: values["release"].update(points=np.zeros((3, 2)), weights=np.full(3, 0.4)),
        "more than 1",
    ),
}


@pytest.mark.parametrize("fault", KME_FAULTS)
def test_an_owner_that_signs_what_does_not_hold_is_refused(tmp_path: Path, fault: str) -> None:
    change, why = KME_FAULTS[fault]
    path = published(tmp_path).path
    rewritten(path, change)
    with pytest.raises(DataError, match=path.name) as refusal:
        read_entry(path)
    assert why in refusal.value.what


RACE_FAULTS: dict[str, tuple[Change, str]] = {
    "less noise than its costs": (put("release", "scale", value=lambda scale: scale / 2.0), "costs"),
    "a size with less noise": (put("release", "count_scale", value=lambda scale: scale / 2.0), "costs"),
    "a size without noise": (put("release", "count_scale", value=0.0), "number of points"),
    "other functions": (put("release", "hashes", "seed", value=4), "digest"),
    "another bandwidth": (put("release", "hashes", "bandwidth", value=0.6), "digest"),
    "no bandwidth": (put("release", "hashes", "bandwidth", value=None), "bandwidth"),
    "fewer counts": (put("release", "counts", value=lambda counts: counts[:-1].copy()), "counts"),
    "counts in more bytes": (put("release", "counts", value=lambda a: a.astype(np.int64)), "smallest type"),
    "another distribution": (put("release", "distribution", value="discrete-laplace"), "costs"),
}


@pytest.mark.parametrize("fault", RACE_FAULTS)
def test_a_sketch_that_does_not_hold_is_refused(tmp_path: Path, fault: str) -> None:
    change, why = RACE_FAULTS[fault]
    path = published(tmp_path, functions=HASHES).path
    rewritten(path, change)
    with pytest.raises(DataError, match=path.name) as refusal:
        read_entry(path)
    assert why in refusal.value.what


def test_numbers_that_are_not_finite_are_refused(tmp_path: Path) -> None:
    path = published(tmp_path).path
    content = path.read_bytes()
    values = decode_part(content[len(TAG) + SIGNATURE_BYTES :])
    for place, number in (("epsilon", np.nan), ("epsilon", np.inf)):
        body = encode_part({**values, place: number})
        path.write_bytes(TAG + sign(TAG + body, key_of("north").signing) + body)
        with pytest.raises(DataError, match="epsilon"):
            read_entry(path)
    # In an array NaN is not even written; bytes that hold one are refused.
    packed = encode_part({**values, "release": {**values["release"], "total": np.ones(64)}})
    whole = packed.replace(np.ones(64).tobytes(), np.full(64, np.nan).tobytes())
    assert whole != packed
    path.write_bytes(TAG + sign(TAG + whole, key_of("north").signing) + whole)
    with pytest.raises(DataError, match="damaged"):
        read_entry(path)


def test_another_order_of_keys_is_refused(tmp_path: Path) -> None:
    path = published(tmp_path).path
    body = path.read_bytes()[len(TAG) + SIGNATURE_BYTES :]
    values = decode_part(body)
    other = encode_part(dict(reversed(values.items())))
    path.write_bytes(TAG + sign(TAG + other, key_of("north").signing) + other)
    with pytest.raises(DataError, match="same bytes again"):
        read_entry(path)


@pytest.mark.parametrize(
    "body", [b"\xc1", b"\x93\x01", msgpack.packb({1: 2}), msgpack.packb([]), b"\x91" * 2000]
)
def test_bytes_that_are_no_entry_are_refused(tmp_path: Path, body: bytes) -> None:
    path = tmp_path / "north.entry"
    path.write_bytes(TAG + sign(TAG + body, key_of("north").signing) + body)
    with pytest.raises(DataError, match=path.name):
        read_entry(path)


def test_simulated_noise_says_so(tmp_path: Path) -> None:
    made = published(tmp_path, noise=SimulatedNoise(7, "north"))
    assert read_entry(made.path).noise == "simulated"


def test_a_larger_epsilon_may_be_stated(tmp_path: Path) -> None:
    path = published(tmp_path).path
    rewritten(path, put("epsilon", value=2.0))
    entry: CatalogueEntry = read_entry(path)
    assert entry.epsilon == 2.0


def test_columns_are_named_where_the_data_name_them(tmp_path: Path) -> None:
    rows = "\n".join(f"{x:.3f},{y:.3f}" for x, y in points_about((0.5, 1.0), 50, seed=2))
    (tmp_path / "north.csv").write_text(f"age,height\n{rows}\n")
    made = published(tmp_path, data=tmp_path / "north.csv", neighbours=Neighbours.SUBSTITUTE_ONE)
    assert read_entry(made.path).columns == ("age", "height")
