r"""A catalogue entry: one private release of one dataset, signed by its publisher.

A file (`signed_entry`, `read_entry`)::

    tag         "hushbid catalogue entry 2\n"
    signature   64 bytes, Ed25519, by the publisher's identity key over the tag and the body
    body        canonical msgpack of `CatalogueEntry`: fields in declared order, arrays as extension type 1

Nothing in it is secret. Anybody can check that the key's holder signed it, that its noise costs what it
states, and that its feature map or hash functions are the named ones. Only the publisher vouches that the
noise was drawn as stated, and from these data.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Final, Literal, TypeAlias, get_args

from pydantic import Field, ValidationError

from hushbid.catalogue.kme import KmeRelease
from hushbid.catalogue.model import EntryPart, decode_part, encode_part
from hushbid.catalogue.race import RaceEntry
from hushbid.protocol import limits, ranges
from hushbid.protocol.config.section import FINITE
from hushbid.protocol.config.session import PartyName
from hushbid.protocol.crypto.identity import Identity, PublicIdentity
from hushbid.protocol.crypto.sealing import SIGNATURE_BYTES, sign, verify_signature
from hushbid.protocol.errors import ConfigError, DataError, HushbidError
from hushbid.protocol.faults import faults
from hushbid.protocol.plain_files import read_plain
from hushbid.protocol.privacy.accounting import cost_from_record, merge_costs
from hushbid.protocol.privacy.releases import Neighbours
from hushbid.race.release import stated_epsilon

__all__ = [
    "KINDS",
    "SUFFIX",
    "CatalogueEntry",
    "EntryHead",
    "read_entry",
    "signed_entry",
]

SUFFIX: Final = ".entry"
"""File name suffix of an entry."""
_KIND: Final = b"hushbid catalogue entry "
TAG: Final = _KIND + b"2\n"
_ROUNDING: Final = 1e-9
"""Relative shortfall of a stated ε that the accountant's rounding on another machine may cause."""

Release: TypeAlias = Annotated[KmeRelease | RaceEntry, Field(discriminator="kind")]
"""The release of an entry; each kind has its own module."""
KINDS: Final[tuple[Any, ...]] = get_args(get_args(Release)[0])
"""The classes of releases, among which `hushbid.catalogue.publishing` finds the one for its functions."""


class EntryHead(EntryPart):
    """The parts of an entry besides its release, all known before anything is charged.

    Attributes:
        name: The owner's desired name on a roster.
        owner: Its public identity key, 40 characters of Z85.
        identifier: The entry's identifier in the owner's lifetime ledger.
        date: Date of creation, YYYY-MM-DD.
        software: The version of hushbid that made it.
        columns: Names of the feature columns; None if the data have none.
        out_of_bounds: Whether rows outside the public bounds are clipped, or refused, so that there are none.
        neighbours: The datasets that ε compares.
        epsilon, delta: Of the release, including its number of points; δ is 0 if ε is pure.
        costs: Its parts, for an accountant (`hushbid.protocol.privacy.accounting.cost_to_record`).
        noise: Source of the noise. "simulated" protects nobody.
        root: What the owner commits to as these data (`hushbid.protocol.crypto.commitment.root_name`); a
            session that shows the same root rests on the same rows. None in older entries.
    """

    name: PartyName
    owner: str
    identifier: Annotated[str, Field(min_length=1, max_length=limits.MAX_TEXT)]
    date: Annotated[str, Field(pattern=r"^\d{4}-\d{2}-\d{2}$")]
    software: Annotated[str, Field(max_length=64)]
    columns: tuple[Annotated[str, Field(max_length=limits.MAX_TEXT)], ...] | None
    out_of_bounds: Literal["refuse", "clip"]
    neighbours: Literal["add-remove-one", "substitute-one"]
    epsilon: Annotated[ranges.Epsilon, FINITE]
    delta: ranges.PureDelta
    costs: tuple[dict[str, Any], ...]
    noise: Literal["secure", "simulated"]
    root: Annotated[str, Field(pattern=r"^[0-9a-f]{64}/[0-9]{1,2}$")] | None = None


class CatalogueEntry(EntryHead):
    """A whole entry, with its release."""

    release: Release

    @property
    def key(self) -> PublicIdentity:
        return PublicIdentity(self.owner)

    def described(self) -> dict[str, Any]:
        """The figures for comparison, under the names of the command line's JSON."""
        return {
            "name": self.name,
            "kind": self.release.kind,
            "fingerprint": self.key.fingerprint,
            "date": self.date,
            "epsilon": self.epsilon,
            "delta": self.delta,
            "neighbours": self.neighbours,
            "noise": self.noise,
            "size": self.release.size,
            "size_deviation": self.release.size_deviation,
            "points": self.release.point_count,
            "root": self.root,
        }

    def file_name(self) -> str:
        """Its file name in a catalogue."""
        return f"{self.name}-{self.release.kind}-{self.identifier[-8:]}{SUFFIX}"

    def check(self) -> None:
        """Recompute what the entry states about itself.

        Raises:
            ConfigError: A statement does not hold; the error says which, but does not name the file.
        """
        relation = Neighbours(self.neighbours)
        self.release.check(relation)
        if self.columns is not None and len(self.columns) != self.release.section.columns:
            raise ConfigError("It names another number of columns than its release has.")
        real = self.release.costs(relation)
        if merge_costs(cost_from_record(cost) for cost in self.costs) != merge_costs(real):
            raise ConfigError("The costs that it states are not those of its noise.")
        spent = stated_epsilon(real, self.delta)
        if not self.epsilon >= spent * (1.0 - _ROUNDING):
            raise ConfigError(
                f"It states ε = {self.epsilon:.6g} at δ = {self.delta:.4g}, and its noise gives {spent:.6g}."
            )


def signed_entry(entry: CatalogueEntry, key: Identity) -> bytes:
    """The bytes of an entry's file, signed by the owner's key; raise a ConfigError for another's key."""
    if key.public.text != entry.owner:
        raise ConfigError("An entry is signed by the key that it names.", advice="Use the owner's key.")
    body = encode_part(entry)
    content = TAG + sign(TAG + body, key.signing) + body
    if len(content) > limits.MAX_ENTRY_FILE_BYTES:
        raise ConfigError(
            f"The entry takes {len(content)} bytes, more than {limits.MAX_ENTRY_FILE_BYTES}.",
            advice="Ask for fewer synthetic points, or for a smaller sketch.",
        )
    return content


def read_entry(path: Path) -> CatalogueEntry:
    """Read an entry and check everything in it that can be checked.

    Raises:
        DataError: It cannot be read, is not an entry or has another version, was changed after signing, or
            states something false. The error names the file.
    """
    try:
        content, _ = read_plain(path, limits.MAX_ENTRY_FILE_BYTES)
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror}.", advice="Check the path.") from None
    if len(content) > limits.MAX_ENTRY_FILE_BYTES:
        raise _refused(path, f"It is longer than {limits.MAX_ENTRY_FILE_BYTES} bytes.")
    if not content.startswith(_KIND):
        raise _refused(path, "It is not a catalogue entry.", advice="Check which file was named.")
    if not content.startswith(TAG):
        raise _refused(
            path,
            "It is of another version of the format than this hushbid reads.",
            advice="Have its owner publish again with this one: entries of version 1 were not sound.",
        )
    start = len(TAG) + SIGNATURE_BYTES
    signature, body = content[len(TAG) : start], content[start:]
    entry = _decoded(path, body)
    try:
        key = entry.key
    except ConfigError:
        raise _refused(path, "It names an invalid key.") from None
    if not verify_signature(TAG + body, signature, key.verify):
        raise _refused(path, "Its signature is not its owner's over what it says.")
    try:
        entry.check()
    except HushbidError as error:
        raise _refused(path, error.what) from None
    return entry


def _decoded(path: Path, body: bytes) -> CatalogueEntry:
    try:
        entry = CatalogueEntry.model_validate(decode_part(body))
    except ValidationError as error:
        first = faults(error)[0]
        where, said = ".".join(first.place) or "entry", first.words.lower()
        # Both can contain a stranger's text, which must not reach a terminal unescaped.
        where, said = (ascii(text)[1:-1] for text in (where[:80], said[:200]))
        raise _refused(path, f"Its {where} cannot be used: {said}.") from None
    except ValueError:
        raise _refused(path, "It is cut off or damaged.") from None
    if encode_part(entry) != body:
        raise _refused(path, "It does not encode to the same bytes again.")
    return entry


def _refused(path: Path, why: str, *, advice: str = "") -> DataError:
    return DataError(
        f"{path}: this entry is refused. {why}", advice=advice or "Have its owner publish or send it again."
    )
