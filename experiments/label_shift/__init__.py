"""Another class balance: what adapting gains where there is one, and where there is none."""
