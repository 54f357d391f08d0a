"""How often the diagnosis is right on labelled logs."""
