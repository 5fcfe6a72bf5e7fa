"""The contracts between the packages: short Protocols, with the contract in prose."""
