"""The part that ends of every carrier share: connecting, buffers, callbacks."""
