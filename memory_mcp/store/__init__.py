"""Where a persona's data lives: its SQLite file (the truth), its context file, and the log of operations. Only this package writes SQL."""
