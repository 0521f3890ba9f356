"""config.json: what it may say (`settings`), reading it (`reading`), following it while the server runs (`live`)."""
