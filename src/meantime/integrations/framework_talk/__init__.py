"""The parts that every framework's Talk shares: its tools, and the order of a turn."""
