"""From settings to a loaded model: finding it, downloading it, loading it and keeping it."""
