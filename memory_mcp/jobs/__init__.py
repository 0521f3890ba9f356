"""Background work: when, for whom, and what happens if it fails. What is done lives below."""
