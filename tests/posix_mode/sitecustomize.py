"""Loaded by every Python that has this folder in its PYTHONPATH. See __init__.py."""

import os

if "MEANTIME_TEST_REFUSALS" in os.environ:
    import refusals

    refusals.install()
