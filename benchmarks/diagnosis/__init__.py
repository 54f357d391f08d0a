"""How often the diagnosis is right on labelled logs, and whether a statistical second opinion would help."""
