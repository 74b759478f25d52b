"""Read the facts about this server: a module for each part."""
