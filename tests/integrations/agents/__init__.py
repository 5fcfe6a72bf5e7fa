"""Real coding agents, with a scripted model behind them."""
