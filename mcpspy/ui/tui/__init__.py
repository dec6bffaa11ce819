"""The terminal UI: screens, panels, detail pane, widgets."""
