"""Chapter 3: a language model with and without a causal mask, so that it cheats or not."""
