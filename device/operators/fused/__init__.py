"""Harder fused operators: sparse and paged attention, quantised products, expert routing, losses with gradients."""

MODULES: tuple[str, ...] = ("attention", "masked", "latent", "gradients", "quantised", "routing", "sequence")
