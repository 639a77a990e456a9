"""Another class balance: estimate it, test whether it can be all that changed, record both."""
