"""Shell scripts, read without running them: which variables they use and set, and in which order.

A reader of pairun's own: `bashlex` is under the GPL, `tree-sitter-bash` is a compiled library that
the images of operators would carry for one warning. This reader refuses nothing. Where it cannot
follow a text, it says that the rest is unknown.
"""
