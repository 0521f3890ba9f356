"""OAuth 2.1: tokens of an external authorization server, and a small one of our own. Off unless config.json turns it on."""
