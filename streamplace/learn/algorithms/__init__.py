"""Parts of learning that depend on no policy: baselines, orders, kernels."""
