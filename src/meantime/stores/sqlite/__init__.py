"""The SQLite ledger: one writer, group commit, SQL apart from code."""
