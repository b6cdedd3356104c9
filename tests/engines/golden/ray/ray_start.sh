#!/usr/bin/env bash
# shop: 6 operators in 3 PEs on 3 devices, by streamplace.
# Use: bash ray_start.sh DEVICE [HEAD:6379] on every machine, the head first.
# Check: ray status lists a resource dev-… for every device.
set -euo pipefail
usage='which device is this? One of: box0, box1, gpu'
head=${2:-}
case "${1:?$usage}" in
  'box0') ray start --head --port=6379 --resources='{"dev-box0": 1000}' ;;
  'box1') ray start --address="${head:?give the address of the head}" --resources='{"dev-box1": 1000}' ;;
  'gpu') ray start --address="${head:?give the address of the head}" --resources='{"dev-gpu": 1000, "tag-gpu": 1000}' ;;
  *) echo "unknown device: $1" >&2; exit 2 ;;
esac
