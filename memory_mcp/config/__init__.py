"""config.json: its keys (`settings`), reading it (`reading`), following changes while the server runs (`live`); and the master key."""
