"""The static book: configuration of the site, and the extension that reads chapters/ by path."""
