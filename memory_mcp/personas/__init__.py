"""Who there is: names and their directories (`names`), open handles (`registry`)."""
