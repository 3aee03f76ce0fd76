#!/usr/bin/env bash
# Makes sure that this machine has the programs from outside of Python that the tests, the pages of the docs and the
# screenshots run: a Chromium with the faces that the pages are designed for, the library of its driver, and curl.
set -euo pipefail
PATH=$PATH:/usr/sbin:/sbin # where Debian keeps ldconfig

missing=() quicker=()
if ! command -v chromium-headless-shell >/dev/null; then
  if command -v chromium >/dev/null; then
    quicker+=(chromium-headless-shell) # without windows it takes a third of the time
  else
    missing+=(chromium-headless-shell fonts-sil-charis fonts-inter fonts-dejavu-core)
  fi
fi
command -v curl >/dev/null || missing+=(curl)
if command -v ldconfig >/dev/null; then
  ldconfig -p | grep 'libatomic\.so\.1' >/dev/null || missing+=(libatomic1)
fi
wanted=("${missing[@]}" "${quicker[@]}")
[ ${#wanted[@]} -gt 0 ] || exit 0

if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
  echo "installing what the tests run with apt-get: ${wanted[*]} …"
  apt-get update -qq && apt-get install -y -qq --no-install-recommends "${wanted[@]}" >/dev/null && exit 0
  [ ${#missing[@]} -eq 0 ] || exit 1
  echo "going on with the whole Chromium, which takes longer" >&2
elif [ ${#missing[@]} -gt 0 ]; then
  echo "the tests need more programs; on Debian: sudo apt-get install ${missing[*]}" >&2
  exit 2
fi
