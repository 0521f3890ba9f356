"""What worked and what failed, for which task: advice, reports of how a task went, judgements of memories, and what they teach the search."""
