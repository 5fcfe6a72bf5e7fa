"""Carriers between the owner of a ledger and its workers; `ports/carrier.py` is their contract."""
