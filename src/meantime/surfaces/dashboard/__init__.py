"""The dashboard: a page for browsers. Its files are in static/; surfaces/http serves them."""
