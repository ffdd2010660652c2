"""How Sphinx lays the site out; `build.py` collects what it lays out."""

from importlib.metadata import version as version_of

project = "qsctl"
version = release = version_of("qsctl")
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
# Docstrings are written for `help()`: types are in the signatures there, and few names are of the documented modules.
autodoc_typehints = "none"
autodoc_member_order = "bysource"
nitpick_ignore_regex = [("py:.*", ".*")]
suppress_warnings = ["ref.python"]  # a class that two packages export has two places
myst_heading_anchors = 3
html_theme = "furo"
html_title = f"qsctl {release}"
html_copy_source = False
html_show_sourcelink = False
html_show_copyright = False
html_static_path = ["_static"]
html_css_files = ["site.css"]
pygments_style = "tango"
pygments_dark_style = "monokai"
smartquotes = False
default_role = "code"  # docstrings set names between single backquotes
