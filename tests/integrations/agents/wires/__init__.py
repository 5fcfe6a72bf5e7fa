"""What a model is asked, and what it answers, in the dialects of four makers."""
