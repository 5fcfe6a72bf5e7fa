"""The carrier on PostgreSQL: offers and messages are rows, SKIP LOCKED shares them out, NOTIFY only wakes."""
