"""The public names of hushbid, listed once: `__init__.py`, type checkers and `dir()` read them here."""

from .catalogue.api import Catalogue as Catalogue
from .catalogue.api import ScreenOptions as ScreenOptions
from .catalogue.publish_options import PublishKme as PublishKme
from .catalogue.publish_options import PublishRace as PublishRace
from .cluster.file import Cluster as Cluster
from .cluster.file import open_cluster as open_cluster
from .consumer.result import ConsumerResult as ConsumerResult
from .curator.result import CuratorResult as CuratorResult
from .evidence.audit.machines import audit_machines as audit_machines
from .owner.result import OwnerResult as OwnerResult
from .parties import Consumer as Consumer
from .parties import Curator as Curator
from .parties import Owner as Owner
from .plan.planning import plan_session as plan_session
from .procuring import Procured as Procured
from .procuring import procure as procure
from .protocol import __version__ as __version__
from .protocol.data.column import Column as Column
from .protocol.data.schema import Schema as Schema
from .protocol.errors import BudgetExceeded as BudgetExceeded
from .protocol.errors import ConfigError as ConfigError
from .protocol.errors import ConnectionFailed as ConnectionFailed
from .protocol.errors import DataError as DataError
from .protocol.errors import Hopeless as Hopeless
from .protocol.errors import HushbidError as HushbidError
from .protocol.errors import KeyFileError as KeyFileError
from .protocol.errors import LocalProtocolError as LocalProtocolError
from .protocol.errors import ProtocolError as ProtocolError
from .protocol.errors import RemoteProtocolError as RemoteProtocolError
from .protocol.errors import ReplayDivergence as ReplayDivergence
from .protocol.errors import Shortage as Shortage
from .protocol.errors import Stopped as Stopped
from .protocol.errors import TimedOut as TimedOut
from .protocol.errors import TranscriptDamaged as TranscriptDamaged
from .protocol.errors import TranscriptUnwritable as TranscriptUnwritable
from .protocol.errors import VectorMismatch as VectorMismatch
from .protocol.machine.progress import Progress as Progress
from .results.run import RunResult as RunResult
from .running.launcher import run as run
from .running.simulate import simulate as simulate
from .tables.training import Trained as Trained
from .tables.training import train as train
from .transcripts.api import Transcript as Transcript
from .transcripts.api import verify_transcripts as verify_transcripts

__all__: list[str]
