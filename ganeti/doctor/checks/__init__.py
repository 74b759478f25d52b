"""Judge facts about a server. Pure: a module for each part of the facts."""
