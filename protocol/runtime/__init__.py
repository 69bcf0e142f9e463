"""What touches the outside world: keys, sockets, authentication. The rest of `protocol` is free of it."""
