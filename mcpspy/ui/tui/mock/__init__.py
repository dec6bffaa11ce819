"""The mock mode: the dialog before it, the live screen, and the window for clients."""
