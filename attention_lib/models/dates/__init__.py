"""Chapter 3: written dates turned into ISO dates, with additive attention."""
