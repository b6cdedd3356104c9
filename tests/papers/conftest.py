"""One thread for torch, as in training."""

from torch_threads import one_torch_thread as one_torch_thread
