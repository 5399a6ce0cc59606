"""Chapter 4: encoders whose heads divide four relations among them."""
