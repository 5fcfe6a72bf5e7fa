"""verbs × thread → tools: what an agent can be given, whatever carries the calls."""
