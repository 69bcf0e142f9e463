"""Sockets: both ends of a connection, and who may have one."""
