"""Adding Meantime to coding agents: their configuration, changed as little as possible."""
