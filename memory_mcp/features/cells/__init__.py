"""Many servers that share the personas, a cell each: splitting a data directory, restoring one from its copies, and files for their router.

Which personas a data directory holds is not of this feature: `personas/cells.py` sees to it that no server takes another's.
"""
