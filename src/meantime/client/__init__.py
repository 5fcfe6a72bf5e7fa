"""ports.tasks over a unix socket: the verbs are the owner's, functions run here."""
