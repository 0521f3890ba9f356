"""One SQLite file: connections, the writer thread with its group commit, encryption, snapshots, errors."""
