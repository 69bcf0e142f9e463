"""The agreement between the parties of a hushbid session.

Messages and wire format, feature maps, releases, acquisition rules, accounting, the transcript and
the machine interface. Nothing here imports a role (`curator`, `owner`, `consumer`) or `hushbid`.
"""

__version__ = "0.2.0"
