"""The socket door: other processes of the same user speak the verbs here, and run their own functions."""
