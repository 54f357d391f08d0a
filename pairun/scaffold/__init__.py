"""The files that `pairun new` writes: a job, a plugin, a module, a content root."""
