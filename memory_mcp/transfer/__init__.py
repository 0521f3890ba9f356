"""Import and export: `jsonlines` is our own format, `documents` reads other people's. Everything is written through remember."""
