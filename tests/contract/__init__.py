"""What every implementation of a port promises."""
