"""Settings of Sphinx for the site that ``python3 bootstrap.py site`` builds."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import mercer
from stage import ROOT

project = "Mercer"
author = "The Mercer developers"
copyright = "The Mercer developers"
version = release = mercer.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "sphinx_gallery.gen_gallery",
    "api_names",
    "mathml",
]
root_doc = "index"
exclude_patterns = ["files"]
templates_path = [str(Path(__file__).parent / "templates")]
# Blocks without a language are output and commands; ``>>>`` is recognised nevertheless.
highlight_language = "default"
# Options (--set) and strings ("rbf") in sentences stay as they are typed.
smartquotes = False
nitpicky = True
# Only other projects: everything of Mercer must resolve.
nitpick_ignore_regex = [("py:.*", r"(sklearn|scipy|numpy|pandas|matplotlib|networkx|dask|distributed|pyarrow)(\..+)?")]

myst_enable_extensions = ["dollarmath"]
myst_fence_as_directive = ["math"]
myst_heading_anchors = 4
html_math_renderer = "mathml"

autosummary_generate = True
autodoc_typehints = "none"
autodoc_member_order = "groupwise"
numpydoc_show_class_members = False

sphinx_gallery_conf = {
    "examples_dirs": str(ROOT / "examples" / "gallery"),
    "gallery_dirs": "gallery",
    # As seen from the staged pages.
    "subsection_order": [
        f"../../../examples/gallery/{part}" for part in ("classify", "regress", "structure", "data", "kernels", "trust")
    ],
    "filename_pattern": r"plot_",
    "doc_module": ("mercer",),
    "backreferences_dir": "api/examples",
    "reference_url": {"mercer": None},
    "inspect_global_variables": False,
    "abort_on_example_error": True,
    # What is printed, and not the address of the last object.
    "capture_repr": (),
    "plot_gallery": True,
    "download_all_examples": False,
    "show_memory": False,
    # How long a program took here says nothing to its readers.
    "min_reported_time": 3600,
    "show_signature": False,
    "write_computation_times": False,
    "remove_config_comments": True,
    "matplotlib_animations": False,
    "within_subsection_order": "FileNameSortKey",
}

html_theme = "pydata_sphinx_theme"
html_static_path = [str(Path(__file__).parent / "static")]
html_css_files = ["site.css"]
html_title = "Mercer"
html_theme_options = {
    "show_toc_level": 2,
    "header_links_before_dropdown": 6,
    "navbar_end": ["theme-switcher"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": ["page-toc"],
    "show_prev_next": True,
}
# Pages without neighbours; and a hundred records in the margin of each of a hundred records help nobody.
alone = ["start", "notation", "architecture", "model_file", "command_line", "decisions/**", "project/**"]
html_sidebars = {page: [] for page in alone}
html_show_sourcelink = False
# Without a server a browser does not let a page read others, which a search for passages would wait for.
html_show_search_summary = False
html_copy_source = False
