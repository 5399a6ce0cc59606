"""Chapter 2: what large scores do to a softmax; nothing is trained, inputs are drawn."""
