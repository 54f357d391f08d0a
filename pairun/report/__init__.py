"""Shows reviews, journals and problems to people and programs."""
