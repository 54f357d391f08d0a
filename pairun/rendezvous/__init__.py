"""How the Pods of a job find each other and share small facts."""
