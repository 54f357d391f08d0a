"""A statistical second opinion: which labelled logs end like one whose cause no rule knows."""
