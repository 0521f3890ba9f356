"""Background work: when it runs, for which persona, and what happens if it fails. The work itself is in `index`, `graph` and `upkeep`."""
