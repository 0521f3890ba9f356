"""Models that run on another server: the connection, the protocols of such servers, and how a change of the model there is noticed."""
