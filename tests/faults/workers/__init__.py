"""An owner, three workers and a broker, each a process of its own, while all of them fail."""
