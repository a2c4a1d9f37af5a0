"""Working memory, long-term memory and the stores behind them."""
