"""Another class balance: what `adapt` gains on a user's word, and what contradicts it."""
