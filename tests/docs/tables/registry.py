"""Every generated part of every document."""

from __future__ import annotations

from typing import Final

from tests.docs.tables import operations, plan, protocol, results
from tests.docs.tables.configuration import CONFIGURATION
from tests.docs.tables.data import DATA
from tests.docs.tables.markers import Made
from tests.docs.tables.privacy import PRIVACY
from tests.docs.tables.reproduction import REPRODUCTION

PAGES: Final[dict[str, dict[str, Made]]] = {
    "docs/audit.md": results.AUDIT,
    "docs/catalogue.md": results.CATALOGUE,
    "docs/commands.md": operations.COMMANDS,
    "docs/configuration.md": CONFIGURATION,
    "docs/data.md": DATA,
    "docs/deploy.md": operations.DEPLOY,
    "docs/experiments.md": results.EXPERIMENTS,
    "docs/faults.md": results.FAULT_SWEEP,
    "docs/operations.md": operations.OPERATIONS,
    "docs/plan.md": plan.PLAN,
    "docs/privacy.md": PRIVACY,
    "docs/protocol.md": protocol.PROTOCOL,
    "docs/reproduction.md": REPRODUCTION,
    "docs/results.md": results.RESULTS,
    "docs/transcript-format.md": protocol.TRANSCRIPT,
    "docs/wire.md": protocol.WIRE,
}
