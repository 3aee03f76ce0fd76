#!/usr/bin/env bash
# Makes sure that this machine has the programs from outside of Python that the tests, the pages of the docs and the
# screenshots run: a Chromium with the faces that the pages are designed for, the library of its driver, and curl.
set -euo pipefail
PATH=$PATH:/usr/sbin:/sbin # where Debian keeps ldconfig

missing=()
command -v chromium >/dev/null || missing+=(chromium fonts-sil-charis fonts-inter fonts-dejavu-core)
command -v curl >/dev/null || missing+=(curl)
if command -v ldconfig >/dev/null; then
  ldconfig -p | grep 'libatomic\.so\.1' >/dev/null || missing+=(libatomic1)
fi
[ ${#missing[@]} -gt 0 ] || exit 0

if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
  echo "installing what the tests run with apt-get: ${missing[*]} …"
  apt-get update -qq && apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
else
  echo "the tests need more programs; on Debian: sudo apt-get install ${missing[*]}" >&2
  exit 2
fi
