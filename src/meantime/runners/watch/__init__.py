"""Watches: work that looks at something and tells of what it finds."""
