"""The command line: speaks HTTP to the daemon, with the standard library and click alone."""
