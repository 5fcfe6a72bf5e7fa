"""`python -m meantime` is `meantime`."""

from meantime.app.main import main

main()
