"""The inside of a run: the context that work is given, and the containment of what it raises."""
