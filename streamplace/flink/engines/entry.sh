#!/bin/sh
# A TaskManager becomes the device of its node; other processes start as usual.
if [ "$1" = taskmanager ]; then
  device=$(cat "/streamplace/nodes/$NODE") || exit 1
  while IFS= read -r option; do
    set -- "$@" "$option"
  done < "/streamplace/devices/$device" || exit 1
fi
exec /docker-entrypoint.sh "$@"
