"""Vectors: an example of everything that another implementation computes, with intermediate values.

`vector_files` computes them, and `check_vectors` compares files with them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import nacl.bindings
import numpy as np

from hushbid.interop.blind_vectors import blind_vectors
from hushbid.interop.commitment_vectors import commitment_vector
from hushbid.interop.exchange import GOLDEN, OWNER, exchange_files, golden_session, key_of, sealed_map
from hushbid.interop.tender_vectors import tender_vectors
from hushbid.protocol.config.loading import load_toml_text
from hushbid.protocol.config.meaning import encoded_meaning
from hushbid.protocol.config.session import SessionFile
from hushbid.protocol.crypto.identity import Identity, simulated_identity
from hushbid.protocol.crypto.sealing import (
    EPHEMERAL_BYTES,
    batch_statement,
    batched_digest,
    candidate_statement,
    head_statement,
    pack_content,
    seal,
    sign,
)
from hushbid.protocol.data.attributes import Attributes, pack_attributes
from hushbid.protocol.errors import ConfigError, DataError, VectorMismatch
from hushbid.protocol.names import CONSUMER, CURATOR
from hushbid.protocol.session.session import open_session
from hushbid.protocol.session.turns import Turns
from hushbid.protocol.space.copies import Copies, lots_of
from hushbid.protocol.space.expansion import Expansion, cosines, normals
from hushbid.protocol.space.features import FeatureMap, feature_map, feature_space
from hushbid.protocol.space.features.fourier import FourierMap, FourierSpace
from hushbid.protocol.space.grid import Features
from hushbid.protocol.space.jitter import Jitter
from hushbid.protocol.space.labels import LabelCode, LabelTurns
from hushbid.protocol.space.prices import in_units, per_price
from hushbid.protocol.wire.arrays import pack_array

__all__ = ["check_vectors", "vector_files", "write_vectors"]

FILE: Final = "vectors.json"
SESSIONS: Final = "sessions"
_EPHEMERAL: Final = bytes(range(100, 100 + EPHEMERAL_BYTES))
_DIGEST: Final = hashlib.sha256
_MAPS: Final[tuple[dict[str, Any], ...]] = (
    {"map": "paired", "dimension": 8, "gamma": 0.5, "columns": 3, "lower": 0.0, "upper": 1.0, "seed": 7},
    {"map": "cosine", "dimension": 4, "gamma": 2.0, "columns": 2, "lower": [-1.0, 0.0], "upper": 10.0,
     "seed": 0},
    {"map": "paired", "dimension": 4, "gamma": 3e-4, "columns": 1, "lower": 0.0, "upper": 255.0,
     "seed": "00" * 31 + "01"},
)  # fmt: skip
"""Tables [features]; the seed of a sealed map is in hexadecimal."""
_LABELS: Final[tuple[tuple[LabelCode, tuple[int | float | str | None, ...]], ...]] = (
    (LabelCode(0.5, (3, 4, 7)), (3, 4, 7, None)),
    (LabelCode(0.3, ("yes", "no")), ("no", "yes")),
    (LabelCode(0.1, (), -1.0, 3.0), (-1.0, 3, 0.3, None)),
)
"""Label settings of the choice, and labels of points that are otherwise equal."""
_WORDS: Final = (0, 1, 2**32 - 1, 2**32, 2**63, 2**64 - 1, 0x0123456789ABCDEF)
_FILES: Final[Mapping[str, Mapping[str, str | None]]] = {
    "numbers": {"features.gamma": "1.0", "summary.epsilon": "2.0"},
    "whole-numbers": {"features.gamma": "1", "summary.epsilon": "2"},
    "defaults-written": {"features.map": '"paired"', "features.lower": "[0, 0.0]", "session.nonce": '""'},
    "another": {"session.nonce": '"again"'},
    "rounds-written": {
        "session.batch": "1",
        "session.seed_weight": "0.1",
        "session.jitter": "50",
        "session.distinct": "true",
    },
    "the seed set in full": {
        "session.seed_weight": "1",
        "session.jitter": "0",
        "session.distinct": "false",
    },
    "without jitter": {"session.jitter": "0"},
    "with copies": {"session.distinct": "false"},
    "of few values": {"session.column_values": "9"},
    "of few values, with copies": {"session.column_values": "9", "session.distinct": "false"},
    "fifty rounds": {"session.points": "999"},
    "fifty rounds, written": {"session.points": "999", "session.batch": "20"},
    "a price": {"wishes.prices": f"{{ {OWNER} = 2 }}"},
    "a price, as a number": {"wishes.prices": f"{{ {OWNER} = 2.0 }}", "session.distinct": "true"},
    "wishes": {
        "wishes.prices": f"{{ {OWNER} = 2.5 }}",
        "wishes.budget": "25",
        "wishes.caps": f"{{ {OWNER} = 10 }}",
    },
    "labels": {"labels.classes": '["no", "yes"]', "labels.similarity": "0.5"},
    "amounts": {"labels.lower": "-1", "labels.upper": "3.0"},
    "owners commit": {"acquisition.commitment_depth": "20"},
    "as many points as fit": {"session.points": "10_000", "acquisition.box_bytes": "65_536"},
    "a tender": {"acquisition.rule": '"tender"', "summary": None},
    "a tender, written": {
        "session.submission": "10",
        "session.batch": "10",
        "session.jitter": "0",
        "session.distinct": "true",
        "acquisition.rule": '"tender"',
        "acquisition.box_bytes": "320",
        "summary.epsilon": "1.5",
    },
    "a tender in three messages": {
        "session.submission": "3_001",
        "session.points": "3_001",
        "acquisition.rule": '"tender"',
        "target.epsilon_curator": "3",
        "summary": None,
        "wishes.prices": f"{{ {OWNER} = 2.5 }}",
        "wishes.caps": f"{{ {OWNER} = 3_001 }}",
    },
}
"""Spellings of a session file; None: a table is left out. `tests/interop/test_vectors.py` lists which mean
the same.
"""
_PRICED: Final = (
    (2**40 + 1, 1.0),
    (2**40 + 1, 2.5),
    (3, 0.0001),
    (1, 1e6),
    (0, 3.0),
    (-7, 0.0001),
    (-8, 1e6),
)
"""Scores in units of 2^-37, and prices."""
_CAPS: Final[tuple[dict[str, Any], ...]] = (
    {"caps": {"heron": 25, "magpie": 25}, "rounds": 50, "batch": 1},
    {"caps": {"magpie": 7, "heron": 12, "stork": 100}, "rounds": 9, "batch": 3},
    {"caps": {"heron": 1}, "rounds": 1, "batch": 1},
)

_HOLDERS: Final = ["heron", "magpie", "stork"]
_COPIED: Final = ([-23170, 23170, 0, 1, 2, 3, -1, 256], [0] * 8)
_HELD: Final = ((0, 0), (2, 0), (2, 0), (1, 1), (1, 0), (0, 1), (1, 0))
"""Points handed over, in the order of verification: owner, and row of φ."""


def vector_files() -> dict[str, str]:
    """Every file of the vectors, by its path in their directory."""
    files = {
        FILE: json.dumps(
            {
                "sessions": [_session_file(name) for name in _FILES],
                "words": _words(),
                "maps": [_map(dict(table)) for table in _MAPS],
                "labels": [_labelled(code, labels) for code, labels in _LABELS],
                "seeds that are refused": ["00" * 31, "00" * 33, ""],
                "keys": [_key(key_of(party), party) for party in (CURATOR, CONSUMER, OWNER)],
                "simulated keys": _simulated_keys(),
                "jitter": _jitter(),
                "gain per price": _priced(),
                "turns": [_turns(**given) for given in _CAPS],
                "copies": _copies(),
                **_sealed(),
                "blind": blind_vectors(),
                "tender": tender_vectors(),
            },
            indent=1,
            ensure_ascii=False,
        )
        + "\n"
    }
    for golden in GOLDEN:
        files |= {f"{SESSIONS}/{golden}/{name}": text for name, text in exchange_files(golden).items()}
    return files


def write_vectors(place: Path) -> list[str]:
    """Write all files to a directory, and return their paths in it; raise a ConfigError if that fails."""
    files = vector_files()
    try:
        for name, text in files.items():
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            (place / name).write_text(text, encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"{place}: cannot be written: {error.strerror}.", advice="Name another.") from None
    return sorted(files)


def check_vectors(place: Path) -> list[str]:
    """Compare the vectors of a directory with the code, and return the paths of the files.

    Raises:
        DataError: A file is missing, or is not JSON.
        VectorMismatch: A value differs; the error names the first one by its file and place.
    """
    files = vector_files()
    for name, text in files.items():
        try:
            there = (place / name).read_text(encoding="utf-8")
            found = list(_paths(json.loads(text), json.loads(there))) if name.endswith(".json") else []
        except (OSError, ValueError) as error:
            raise DataError(
                f"{place / name}: it cannot be read as a vector ({type(error).__name__}).",
                advice="Get it again, or write all of them with `hushbid interop vectors`.",
            ) from None
        if found or there != text:
            where = found[0] if found else "how it is written"
            more = f" ({len(found) - 1} more in this file)" if found[1:] else ""
            raise VectorMismatch(
                f"{place / name}: {where} is not what this version computes{more}.",
                advice="Compare the versions; `hushbid interop vectors` writes those of this one.",
            )
    return sorted(files)


def _paths(ours: Any, theirs: Any, at: str = "") -> Iterator[str]:
    """The dotted names of values that differ."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        for name in {**ours, **theirs}:
            yield from _paths(ours.get(name), theirs.get(name), f"{at}.{name}" if at else name)
    elif isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        for place, pair in enumerate(zip(ours, theirs, strict=True)):
            yield from _paths(*pair, f"{at}[{place}]")
    elif (type(ours), ours) != (type(theirs), theirs):
        yield at


def _session_file(name: str) -> dict[str, Any]:
    tables: dict[str, dict[str, str]] = {
        "session": {"name": '"vector"', "points": "10", "numbered": "false"},
        "features": {"columns": "2", "gamma": "1.0"},
        "target": {"mechanism": '"filtered-gaussian"', "epsilon": "1.5", "neighbours": '"substitute-one"'},
        "summary": {"mechanism": '"filtered-gaussian"', "epsilon": "2.0", "neighbours": '"add-remove-one"'},
        "acquisition": {"rule": '"sealed"'},
        "roster": {party: f'"{key_of(party).public}"' for party in (CURATOR, CONSUMER)},
        "roster.owners": {OWNER: f'"{key_of(OWNER).public}"'},
        "wishes": {},
        "labels": {},
    }
    for path, value in _FILES[name].items():
        table, _, key = path.partition(".")
        if value is None:
            tables[table].clear()
        else:
            tables[table][key] = value
    text = "".join(
        f"[{table}]\n" + "".join(f"{key} = {value}\n" for key, value in keys.items())
        for table, keys in tables.items()
        if keys
    )
    file = load_toml_text(SessionFile, text, where=name)
    open_session(file)
    return {
        "name": name,
        "toml": text,
        "encoded": encoded_meaning(file.in_force(), file.owners).hex(),
        "digest": file.digest().hex(),
    }


def _priced() -> list[dict[str, Any]]:
    """Scores with prices, best first."""
    ordered = sorted(_PRICED, key=lambda each: per_price(each[0], in_units(each[1])), reverse=True)
    return [{"score": score, "price": price} for score, price in ordered]


def _turns(caps: Mapping[str, int], rounds: int, batch: int) -> dict[str, Any]:
    given = Turns.of(caps, rounds=rounds, batch=batch).given
    turns = {owner: sorted(numbers) for owner, numbers in given.items()}
    return {"caps": dict(caps), "rounds": rounds, "batch": batch, "turns": turns}


def _words() -> list[dict[str, Any]]:
    words = np.array(_WORDS, dtype=np.uint64)
    turns = cosines((words & np.uint64(2**32 - 1)).astype(np.int64))
    rows = zip(_WORDS, turns.tolist(), normals(words).tolist(), strict=True)
    return [
        {"word": f"{word:016x}", "cosine of its lower half": cosine, "normal number": normal}
        for word, cosine, normal in rows
    ]


def _map(table: dict[str, Any]) -> dict[str, Any]:
    said = table.pop("seed")
    seed = bytes.fromhex(said) if isinstance(said, str) else said
    name = table["map"]
    made: FeatureMap = feature_map(
        name,
        seed=seed,
        dimension=table["dimension"],
        gamma=table["gamma"],
        columns=table["columns"],
        lower=np.asarray(table["lower"]) if isinstance(table["lower"], list) else table["lower"],
        upper=table["upper"],
    )
    space = made.space
    if not isinstance(made, FourierMap) or not isinstance(space, FourierSpace):
        raise TypeError(f"{name} is no map of frequencies")
    rows = Expansion(f"hushbid feature map 2 {name}".encode(), seed).rows(
        space.frequencies, space.columns + 1
    )
    lower = np.broadcast_to(np.asarray(table["lower"], dtype=np.float64), space.columns)
    width = np.asarray(table["upper"]) - lower
    # Both ends, the middle, halves of a grid unit (ties go to even), and another point.
    shares = [0.0, 1.0, 0.5, 0.5 * 2.0**-space.point_bits, 1.5 * 2.0**-space.point_bits, 0.3]
    points = np.array([lower + share * width for share in shares])
    return {
        "features": table,
        "seed": said,
        "G": space.point_bits,
        "P": space.turn_bits,
        "words": [[f"{word:016x}" for word in row] for row in rows.tolist()],
        "W": made.whole_numbers[0].tolist(),
        "b": made.whole_numbers[1].tolist(),
        "digest": made.digest.hex(),
        "points": points.tolist(),
        "phi": made.hash(points).tolist(),
    }


def _labelled(code: LabelCode, labels: Sequence[int | float | str | None]) -> dict[str, Any]:
    space = feature_space("paired", dimension=8, gamma=0.5, columns=2, lower=0.0, upper=1.0).with_labels(code)
    made = space.map(7)
    points = np.full((len(labels), 2), 0.25)
    return {
        "labels": {
            "similarity": code.similarity,
            **({"classes": code.classes} if code.classes else {"lower": code.lower, "upper": code.upper}),
        },
        "theta": LabelTurns(code, 4, 7).corners.tolist(),
        "digest": made.digest.hex(),
        "of points": list(labels),
        "phi": made.hash(points, labels).tolist(),
    }


def _key(key: Identity, party: str) -> dict[str, str]:
    return {
        "party": party,
        "Ed25519 seed": key.seed.hex(),
        "Ed25519 seed, Z85": key.secret,
        "Ed25519 public key": key.public.raw.hex(),
        "Ed25519 public key, Z85": key.public.text,
        "X25519 secret key": bytes(key.sealing).hex(),
        "X25519 public key": bytes(key.public.sealing).hex(),
        "fingerprint": key.public.fingerprint,
    }


def _simulated_keys() -> list[dict[str, Any]]:
    digest, seed = _DIGEST(b"hushbid vector: a session").digest(), 2**40 + 3
    found = []
    for party in (CURATOR, CONSUMER, OWNER):
        name = party.encode()
        hashed = digest + seed.to_bytes(8, "big") + len(name).to_bytes(4, "big") + name
        made = simulated_identity(digest, seed, party)
        found.append(
            {"hashed": (b"hushbid simulated identity 1\0" + hashed).hex(), "noise.seed": seed}
            | _key(made, party)
        )
    return found


def _jitter() -> dict[str, Any]:
    session = golden_session("sealed-batch")
    features = np.array([[-23170, 23170, 0, 1, 2, 3, -1, 256], [0] * 8], dtype=np.int16)
    return {
        "session": session.identifier.hex(),
        "features": features.tolist(),
        "jitter": Jitter(session.identifier).of(features).tolist(),
    }


def _copies() -> dict[str, Any]:
    """The sellers of points that several owners hold, one of them twice."""
    session = golden_session("tender").identifier
    copies, features = Copies(session), np.array(_COPIED, dtype=np.int16)
    ranks, rows = zip(*_HELD, strict=True)
    copies.extend(features[list(rows)], np.array(ranks, dtype=np.intp))
    points: dict[tuple[int, int], list[int]] = {}
    for entry, row in enumerate(rows):
        points.setdefault((row, copies.place(entry)), []).append(entry)
    return {
        "session": session.hex(),
        "owners": _HOLDERS,
        "handed over": [{"owner": _HOLDERS[rank], "features": _COPIED[row]} for rank, row in _HELD],
        "points": [
            _sold(session, copies, features[row], place, there)
            for (row, place), there in sorted(points.items())
        ],
    }


def _sold(session: bytes, copies: Copies, phi: Features, place: int, entries: list[int]) -> dict[str, Any]:
    ranks = [_HELD[entry][0] for entry in entries]
    available, sellers = np.zeros(len(_HELD), dtype=np.bool_), []
    available[entries] = True
    for _ in entries:  # Each seller in turn is absent.
        entry = copies.seller(entries[0], phi, available)
        available[entry] = False
        sellers.append(_HOLDERS[_HELD[entry][0]])
    lots = lots_of(session, place, phi, ranks)
    return {
        "features": phi.tolist(),
        "place": place,
        "draws": {_HOLDERS[rank]: lot.hex() for rank, lot in zip(ranks, lots, strict=True)},
        "sellers": sellers,
    }


def _sealed() -> dict[str, Mapping[str, Any]]:
    """Boxes and signatures in the golden session `sealed`, with their contents."""
    session = golden_session("sealed")
    consumer, owner = key_of(CONSUMER), key_of(OWNER)
    bound = b"hushbid box between 1\0" + bytes(consumer.public.sealing) + bytes(owner.public.sealing)
    bound += b"hushbid secret map 1\0" + session.identifier
    point = np.array([0.5, 1.0, 0.125])
    attributes = pack_attributes(Attributes("b", "row-2, which is longer"), 40)
    content = pack_content(point, attributes, session.box_bytes)
    box = seal(content, consumer.public.sealing, _EPHEMERAL)
    ephemeral_key = nacl.bindings.crypto_scalarmult_base(_EPHEMERAL)
    nonce = hashlib.blake2b(ephemeral_key + bytes(consumer.public.sealing), digest_size=24)
    features = np.array([-23170, 23170, 0, 1, 2, 3, -1, 256], dtype=np.int16)
    statement = candidate_statement(session.identifier, OWNER, 3, 2, box, features)
    head = _DIGEST(b"hushbid vector: a head").digest()
    signed_head = head_statement(session.identifier, OWNER, head)
    return {
        "sealed map": {
            "session digest": session.digest.hex(),
            "bound": bound.hex(),
            "binding": _DIGEST(bound).hexdigest(),
            "box": sealed_map(session).hex(),
        },
        "box": {
            "point": point.tolist(),
            "attributes": attributes.hex(),
            "content": content.hex(),
            "ephemeral secret": _EPHEMERAL.hex(),
            "nonce": nonce.hexdigest(),
            "box": box.hex(),
        },
        "signature": {
            "owner": OWNER,
            "round": 3,
            "handle": 2,
            "features": features.tolist(),
            "features as an array": pack_array(features).hex(),
            "SHA-256 of the box": _DIGEST(box).hexdigest(),
            "SHA-256 of the features": _DIGEST(pack_array(features)).hexdigest(),
            "statement": statement.hex(),
            "signature": sign(statement, owner.signing).hex(),
        },
        "commitments": commitment_vector(session, OWNER, owner),
        "batch": _batch(box, features),
        "head": {
            "party": OWNER,
            "head": head.hex(),
            "statement": signed_head.hex(),
            "signature": sign(signed_head, owner.signing).hex(),
        },
    }


def _batch(box: bytes, features: np.ndarray[Any, np.dtype[np.int16]]) -> dict[str, Any]:
    """The signature of two points and padding in the golden session `sealed-batch`."""
    session, owner = golden_session("sealed-batch"), key_of(OWNER)
    other = seal(
        pack_content(
            np.array([1.0, 0.0, 0.75]), pack_attributes(Attributes("ä", "row-3"), 40), session.box_bytes
        ),
        key_of(CONSUMER).public.sealing,
        _EPHEMERAL[::-1],
    )
    handles = (2, 7, 0)
    boxes = (box, other, bytes(session.box_length))
    rows = (features, features[::-1].copy(), np.zeros_like(features))
    digests = list(map(batched_digest, handles, boxes, rows))
    statement = batch_statement(session.identifier, OWNER, 3, b"".join(digests))
    return {
        "session digest": session.digest.hex(),
        "owner": OWNER,
        "round": 3,
        "handles": handles,
        "features": [row.tolist() for row in rows],
        "boxes": [each.hex() for each in boxes],
        "digests": [digest.hex() for digest in digests],
        "statement": statement.hex(),
        "signature": sign(statement, owner.signing).hex(),
    }
