"""Reads shell scripts without running them: which variables they use and set, in which order.

pairun has its own reader, because `bashlex` is under the GPL, and `tree-sitter-bash` is a compiled
library that operators' images would carry for one warning. The reader rejects no text. Where it
cannot follow one, it reports the rest as unknown.
"""
