"""Maintenance of stored data: adopting older stores, retention, purge, backup and restore, encryption, summaries, proposals of merges."""
