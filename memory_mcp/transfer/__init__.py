"""Import and export: `jsonlines` is the native format, `formats` reads those of other programs, `*_export` writes files for them."""
