"""Who and what a text names: marked by its writer, known already, or told by a light rule. In this order of trust."""
