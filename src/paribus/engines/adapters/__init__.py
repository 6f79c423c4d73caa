"""One file an engine: each holds `ENGINE`, an object with the methods of `paribus.engines.base.Engine`."""
