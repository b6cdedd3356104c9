"""``python -m streamplace.kernels``: compile the kernels now, so that no command has to."""

from streamplace.kernels.preparing import prepare_kernels

if __name__ == "__main__":
    prepare_kernels()
