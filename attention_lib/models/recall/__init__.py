"""Chapter 3: recall over a distance, recurrent networks beside attention."""
