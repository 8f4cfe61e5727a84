"""Real servers for tests, started when the first test asks and gone with the session."""
