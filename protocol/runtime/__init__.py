"""Code that touches the outside world: keys, sockets, authentication. The rest of `protocol` does not."""
