"""The daemon of a home: where its files are, whether its process lives, and how it is started."""
