"""Sources of the judge's own compiled helpers (C++): the jail, and what makes memory cold."""
