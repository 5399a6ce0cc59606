"""Chapter 5: recall under sparse masks, beside what the masks let a token depend on."""
