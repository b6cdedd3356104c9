"""Parts of learning that depend on no policy: baselines, memories, orders, kernels."""
