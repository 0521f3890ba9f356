"""Models that run on another server: the connection, the forms that such servers speak, and how a change of the model there is noticed."""
