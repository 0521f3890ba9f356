"""Vectors: the rows that store them, the queue of memories that lack them, and the FAISS index made from them."""
