"""Real OpenCode servers, with a scripted model behind them."""
