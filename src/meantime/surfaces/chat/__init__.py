"""`meantime chat`: a conversation in the terminal with an agent that never waits."""
