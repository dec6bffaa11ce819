"""The model of a session, which the terminal UI, the web page, the agent and the commands draw."""
