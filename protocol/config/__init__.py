"""Configuration: the public session file that all parties share, and a private file per party.

`protocol.config.loading` reads them from disk.
"""

from protocol.config.party import ConsumerFile, CuratorFile, DataSection, OwnerFile
from protocol.config.session import (
    FeatureSection,
    MechanismSection,
    NetworkSection,
    NoiseSection,
    RosterSection,
    RuleSection,
    SessionFile,
    SessionSection,
    TimeoutSection,
)

__all__ = [
    "ConsumerFile",
    "CuratorFile",
    "DataSection",
    "FeatureSection",
    "MechanismSection",
    "NetworkSection",
    "NoiseSection",
    "OwnerFile",
    "RosterSection",
    "RuleSection",
    "SessionFile",
    "SessionSection",
    "TimeoutSection",
]
