"""What should not be written down as it is: finding it in a text, and putting a placeholder in its place."""
