#!/usr/bin/env bash
# Runs the checks and the tests at the same time: the tests leave processors idle while they wait for disks and a browser.
# Prints the output of the checks in one piece when they end, and again after the tests if they failed.
set -uo pipefail
set -m # a process group for the checks, to end all of them

printed=$(mktemp)
{
  make --no-print-directory check >"$printed" 2>&1
  code=$?
  printf '\n%s\n' "$(cat "$printed")"
  exit $code
} &
checks=$!
trap 'kill -- -"$checks" 2>/dev/null; rm -f "$printed"' EXIT

.venv/bin/python -m pytest -n 3 --dist worksteal -m 'not live'
tests=$?
[ $tests -ne 2 ] || exit 2 # interrupted
if ! wait "$checks"; then
  printf '\nthe checks failed:\n%s\n' "$(cat "$printed")"
  exit 1
fi
exit $tests
