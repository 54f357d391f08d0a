"""Views for people and programs: of reviews, of journals, of problems."""
