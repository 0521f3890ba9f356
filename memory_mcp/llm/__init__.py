"""Chat models: which vendors and servers there are, which of them a name means, and an optional one for work in the background, such as summaries."""
