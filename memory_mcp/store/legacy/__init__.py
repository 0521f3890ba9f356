"""What older servers left: their files, tables and rows, and how they become ours."""
