#!/usr/bin/env bash
# install.sh ENVIRONMENT ARGUMENT...: pip's arguments, carried out by uv in a fraction of the time,
# or by pip where uv cannot. It says what is downloaded, and every eight seconds how much is there.
#
# Without an NVIDIA driver torch is the build for CPUs, a twentieth of PyPI's. It comes from the
# index of PyTorch, or from PIP_FIND_LINKS where that does not answer.
set -euo pipefail
environment=$1
shift
uv=${UV:-$environment/bin/uv}
# Without quotes where they are used: words, not one argument.
options="--python $environment/bin/python"
for place in ${PIP_FIND_LINKS:-}; do options+=" --find-links $place"; done

size() { du -sm "$environment" | cut -f1; }
if [ ! -t 2 ]; then
    while sleep 8 >/dev/null 2>&1; do echo "   $SECONDS s, $(size) MB in $environment"; done &
    trap "kill $!" EXIT
fi

echo "   looking for packages"
torch="--torch-backend auto"
probe="$uv pip install --dry-run --reinstall-package torch $options -c constraints.txt torch"
if ! UV_HTTP_RETRIES=0 $probe $torch >/dev/null 2>&1; then
    torch=
    if $probe 2>&1 | grep nvidia >/dev/null; then
        echo "PyTorch's index does not answer: torch comes from PyPI with CUDA, 4.6 GB on the disk"
    fi
fi

install() { "$uv" pip install $options $torch "$@"; }
if [ -t 2 ]; then
    install "$@"
else
    install "$@" 2> >(grep --line-buffered -v '^ [+~-] ' >&2)
fi || "$environment/bin/pip" install --disable-pip-version-check --progress-bar off "$@"
