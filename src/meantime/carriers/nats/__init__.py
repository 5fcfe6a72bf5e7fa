"""The carrier on NATS: offers on a JetStream work queue, messages on plain subjects."""
