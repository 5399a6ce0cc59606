"""Chapter 1: the encoder that learns where "it" looks."""
