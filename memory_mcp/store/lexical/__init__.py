"""Full-text search: the FTS5 index with its BM25 weights, and how frequent each token is."""
