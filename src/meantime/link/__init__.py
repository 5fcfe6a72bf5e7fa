"""How the verbs travel between the owner of a ledger and the processes that are connected to it."""
