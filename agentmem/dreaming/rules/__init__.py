"""The rules of a dream that hold in every language, and the comparisons behind them."""
