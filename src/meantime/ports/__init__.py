"""What the rooms promise each other: short Protocols, with the contract in prose."""
