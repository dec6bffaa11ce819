"""The documentation site: Sphinx, MyST and furo over the same Markdown that GitHub shows.

    make site

The root of the checkout is the source folder, so that links to README.md or ARCHITECTURE.md are links of the site.
"""

from pygments.lexers.special import TextLexer  # type: ignore[import-untyped]  # It ships no types.
from sphinx.application import Sphinx

from mcpspy import __version__

project = "mcpspy"
author = "The mcpspy authors"
project_copyright = "The mcpspy authors, MIT license"
release = __version__

extensions = ["myst_parser", "sphinx.ext.githubpages"]
root_doc = "docs/index"
# `--forward` is an option, not a dash.
smartquotes = False
include_patterns = ["*.md", "docs/**.md", "recordings/README.md"]

# Anchors as GitHub makes them, down to the headings that pages link to.
myst_heading_anchors = 4

html_theme = "furo"
html_title = "mcpspy"
html_extra_path = ["site"]
html_show_sphinx = False
html_copy_source = False
pygments_style = "tango"
pygments_dark_style = "monokai"


def setup(app: Sphinx) -> None:
    """Show diagrams as their text: their renderer would be loaded from the network."""
    app.add_lexer("mermaid", TextLexer)
