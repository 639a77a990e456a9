"""Is the promise of a target accuracy kept? How much is decided of what could be."""
