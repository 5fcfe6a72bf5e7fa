"""The socket server: other processes of the same user call the verbs here, and run their own functions."""
