"""What Meantime costs: ratios measured in one run. Absolute times depend on the machine and the hour."""
