"""What a module's class becomes: arguments, a schema, a loaded class."""
