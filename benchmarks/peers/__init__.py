"""Other systems, driven in their own environment by their own interpreter; standard library only."""
