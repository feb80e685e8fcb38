"""The audit's pages, rendered on the server: plain HTML and SVG, no script."""
