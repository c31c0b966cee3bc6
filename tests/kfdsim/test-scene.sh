#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later
# test-scene.sh NAME: all of a scene in tests/run --long; else no programs without gpuarb: that these oversubscribe the
# emulated driver test-life.sh (queues) and test/test-sim-random.c (processes) prove.
set -eu
name=$1
shift
case ${GPUARB_LONG:+long }$name in
three-processes)
	echo 'skipped: it plays three programs for minutes: tests/run --long'
	exit 77
	;;
oversubscription) set -- --with ;;
esac
exec "$(dirname "$0")/../scenes/$name" "$@"
