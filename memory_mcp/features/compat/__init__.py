"""The tools of older memory servers, as instructions written for them expect."""
