"""One folder for each outside system that Meantime works with."""
