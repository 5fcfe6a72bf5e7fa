"""One verb a file; `command` is its click command. The table of them is in app/main.py."""
