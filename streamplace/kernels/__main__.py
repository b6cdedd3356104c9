"""``python -m streamplace.kernels``: compile the kernels now, so that no command has to."""

import sys

from streamplace.kernels import prepare_kernels

if __name__ == "__main__" and not prepare_kernels():
    sys.exit(
        "error: kernels can be kept nowhere: neither beside the code nor in the cache folder of the"
        " user; name a folder that only you can write to by NUMBA_CACHE_DIR"
    )
