"""One verb a file; `command` is its declaration (or a click command). The table of them is in app/main.py."""
