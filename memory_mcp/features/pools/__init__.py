"""Pools: stores that several personas share, and packs: signed files of what is in one, which others install."""
