"""`python -m meantime.app.demo` is `meantime demo`."""

from __future__ import annotations

import sys

from meantime.app.main import main

if __name__ == "__main__":
    sys.argv.insert(1, "demo")
    main()
