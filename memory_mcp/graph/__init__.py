"""The graph's read side: who stands near whom, how two hang together, what the whole looks like. Changes nothing."""
