"""The static site: pages rendered from the results database and the catalog, readable without JavaScript."""

from paribus.site.render import Rendered, render_site

__all__ = ["Rendered", "render_site"]
