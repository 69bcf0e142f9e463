"""The agreement between the parties of a hushbid session.

It has messages, feature maps, releases, acquisition rules, accounting, transcripts and the machine interface.
Nothing here imports a role (`curator`, `owner`, `consumer`) or `hushbid`.
"""

__version__ = "0.2.0"
