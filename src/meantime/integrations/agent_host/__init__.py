"""The kit of session hosts: what every host needs, so that each one holds only its own wire."""
