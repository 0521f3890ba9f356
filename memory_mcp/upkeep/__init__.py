"""Looking after what is stored: layouts of older servers (`legacy_layout` plans, `legacy` does it)."""
