"""A session's cost to one party's data: checked before it enrols, charged before anything is released.

A ledger that cannot be used is a `HushbidError` throughout.
"""

from __future__ import annotations

import datetime
import os
from dataclasses import dataclass, replace
from pathlib import Path

from hushbid.protocol.config.party import BudgetSection, ConsumerFile, OwnerFile
from hushbid.protocol.data import Dataset
from hushbid.protocol.errors import ConfigError
from hushbid.protocol.machine.machine import Charge, ChargedData
from hushbid.protocol.names import CONSUMER
from hushbid.protocol.privacy.accounting.validation import check_delta_of
from hushbid.protocol.runtime.ledger.cap import Cap
from hushbid.protocol.runtime.ledger.known_ledgers import KnownRows
from hushbid.protocol.runtime.ledger.lifetime_ledger import LifetimeLedger, read_ledger
from hushbid.protocol.runtime.ledger.spending import Spending
from hushbid.protocol.runtime.telemetry.log_events import LogEvent
from hushbid.protocol.runtime.telemetry.logs import log
from hushbid.protocol.session.guarantee import PrivacyStatement
from hushbid.protocol.session.session import Session

__all__ = ["DatasetBudget", "charges", "dataset_budget", "ledger_path"]


@dataclass(frozen=True)
class DatasetBudget:
    """The lifetime ledger of a party's data, and what this session is to charge it.

    Attributes:
        paid_as: The recorded identifier of a release that the session uses again; empty: it makes its own.
    """

    path: Path
    budget: BudgetSection | None
    rows: KnownRows
    spending: Spending
    subject: ChargedData
    paid_as: str = ""

    def check(self, *, transcript: str = "", record: bool = True, warn: bool = True) -> Cap | None:
        """Refuse to enrol in a session that the budget does not allow.

        Args:
            transcript: The beginning of the party's transcript of the session (`party.beginning`); empty: it
                has none.
            record: Whether the ledger records the party's budget; False: nothing is written, or made.
            warn: Whether to log findings that are no obstacle.

        Returns:
            The budget in force, if any.

        Raises:
            BudgetExceeded: It exceeds the remaining budget.
            ConfigError: The session has been run before, or reuses a release that the ledger has no charge
                of.
        """
        with self._open(record=record) as ledger:
            if warn:
                ledger.warn()
                self._warn_of_other_rows(ledger)
            if self.paid_as and all(each.identifier != self.paid_as for each in ledger.spendings):
                raise ConfigError(
                    f"{self.path}: the release of the target that was named was not charged to this ledger.",
                    advice="Name the ledger that `hushbid screen` charged, or leave the release out.",
                )
            ledger.check(self._of_this_run(ledger, transcript))
            return ledger.cap

    def _warn_of_other_rows(self, ledger: LifetimeLedger) -> None:
        """Log that the last commitment to these data, of this key and depth, was to other rows.

        Another key gives the same rows another root, which tells nothing of them. `hushbid run` makes a key
        for each party each time.
        """
        made = _made_with(self.spending)
        named = [each for each in ledger.spendings if each.root and _made_with(each) == made]
        if named and named[-1].root != self.spending.root:
            session = named[-1].identifier.partition("/")[0]
            log(LogEvent.LEDGER_OTHER_ROWS, path=str(self.path), session=session)

    def elsewhere(self) -> Path | None:
        """Another ledger, if any, that the same rows were charged to; its budget does not bind here."""
        with self._open(record=False) as ledger:
            return ledger.elsewhere

    def charge(self, transcript: str) -> None:
        """Charge the session, durably. The machine says when: before any of the data leave.

        Args:
            transcript: As for `check`. What is charged are the releases of this transcript alone: those of
                another would be made with other noise.

        Raises:
            BudgetExceeded: It exceeds the remaining budget.
            ConfigError: The session has been charged since it was checked, for another transcript.
        """
        with self._open() as ledger:
            ledger.charge(self._of_this_run(ledger, transcript))

    def charged_line(self) -> str:
        """Whether the session is charged by now, for people."""
        _, session, *others = self.spending.identifier.split("/")
        charged = charges(self.path, session, others[-1])
        return f"The session is charged to {charged[0]}." if charged else "Nothing was charged yet."

    def _of_this_run(self, ledger: LifetimeLedger, transcript: str) -> Spending:
        """The spending; if an older version, which left the party out, charged it, then under that name.

        Raises:
            ConfigError: It is on record for another transcript. Older versions did not say for which.
        """
        older = self.spending.identifier.rpartition("/")[0]
        spending = replace(self.spending, transcript=transcript)
        for each in ledger.spendings:
            if each.kind == "session" and each.identifier in (older, spending.identifier):
                if not transcript or each.transcript not in ("", transcript):
                    raise self._run_before()
                return replace(spending, identifier=each.identifier)
        return spending

    def _run_before(self) -> ConfigError:
        return ConfigError(
            f"{self.path}: this session has been run before with these data. A second run's boxes, "
            "signatures and releases could not be told from those of the first.",
            advice="To go on with it, name the state directory that has its transcript. To run it anew, "
            "agree on another session.nonce in the session file.",
        )

    def _open(self, *, record: bool = True) -> LifetimeLedger:
        return LifetimeLedger.open(
            self.path,
            budget=self.budget,
            neighbours=self.spending.neighbours,
            rows=self.rows,
            record=record,
        )


def dataset_budget(
    session: Session,
    file: OwnerFile | ConsumerFile,
    data: Path,
    dataset: Dataset,
    charge: Charge,
    statement: PrivacyStatement,
    *,
    paid_as: str = "",
    root: str = "",
) -> DatasetBudget:
    """The ledger of a party's data, and what the session costs it.

    Args:
        charge: What the party's machine will charge.
        statement: What the session guarantees to the data.
        paid_as: The recorded identifier of an earlier release of the data: the session is then recorded at no
            further cost. Empty: the session makes a release of its own.
        root: What the party commits to as these data; empty: it does not commit.

    Raises:
        ConfigError: δ is no guarantee for so many rows (`check_delta_of`).
        DataError: There are more rows than the file says there are at most.
    """
    holds = statement.epsilon is not None and not statement.why
    if holds:
        check_delta_of(statement.delta, file.public_rows(len(dataset)), "the data")
    # A rule's slack can only be added to what is composed: then the session counts as one (ε, δ) mechanism.
    composes = holds and session.rule.slack == (0.0, 0.0)
    # Boxes, signatures and releases are told apart by the session's identifier, so that one is run once.
    # Where nothing is protected, and nothing sealed, a session file may be run again.
    once = session.noise_protects and (session.rule.sealed or session.draws_noise())
    run = "" if once else f"/{os.urandom(8).hex()}"
    # Two parties of a session that have the same data, or one ledger, are charged for a release each.
    party = file.name if isinstance(file, OwnerFile) else CONSUMER
    spending = Spending(
        kind="session",
        identifier=f"{session.file.session.name}/{session.identifier.hex()}{run}/{party}",
        date=datetime.datetime.now(datetime.UTC).date(),
        neighbours=charge.neighbours,
        epsilon=0.0 if paid_as else statement.epsilon if holds else None,
        delta=0.0 if paid_as else statement.delta,
        costs=charge.costs if composes and not paid_as else (),
        root=root,
        key=session.file.roster.owners[file.name] if root and isinstance(file, OwnerFile) else "",
    )
    return DatasetBudget(
        ledger_path(file, data),
        file.budget,
        KnownRows(dataset),
        spending,
        charge.subject,
        paid_as,
    )


def _made_with(spending: Spending) -> tuple[str, str]:
    """The key and the depth of a root: with the same two, other rows alone give another root."""
    return spending.key, spending.root.rpartition("/")[2]


def ledger_path(file: OwnerFile | ConsumerFile, data: Path) -> Path:
    """Where the lifetime ledger of a party's data lies."""
    return file.ledger or data.with_name(f"{data.name}.ledger")


def charges(ledger: Path, identifier: str, party: str) -> list[str]:
    """A session's charge to a ledger for a party's data, in words; nothing without a ledger.

    Args:
        ledger: Its file, which is neither held nor changed.
        identifier: The session's, in hexadecimal.
    """
    if not ledger.exists():
        return []
    found = []
    for spending in read_ledger(ledger).spendings:
        _, _, rest = spending.identifier.partition("/")
        session, *others = rest.split("/")
        if spending.kind == "session" and session == identifier and others[-1:] == [party]:
            epsilon = "no guarantee" if spending.epsilon is None else f"ε = {spending.epsilon:.4g}"
            found.append(
                f"{party}: {epsilon} at δ = {spending.delta:.1g} ({spending.neighbours}), in {ledger}"
            )
    return found
