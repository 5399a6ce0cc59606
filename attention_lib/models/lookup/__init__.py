"""Chapter 2: a look-up, learned with and without 1/sqrt(d_k)."""
