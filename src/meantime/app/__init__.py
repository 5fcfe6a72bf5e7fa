"""The only place that knows everyone: settings, wiring, the system clock."""
