"""What pairun derives from a module's class: arguments, a schema, a loaded class."""
