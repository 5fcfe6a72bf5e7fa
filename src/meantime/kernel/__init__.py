"""The pure heart: values in, values out. No clock, no I/O, no asyncio, no logging, no random."""
