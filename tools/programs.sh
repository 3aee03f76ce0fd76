#!/usr/bin/env bash
# Makes sure that this machine has the programs from outside of Python that the tests, the pages of the docs and the
# screenshots run: a Chromium with the faces that the pages are designed for, the library of its driver, and curl.
set -euo pipefail
PATH=$PATH:/usr/sbin:/sbin # where Debian keeps ldconfig

wanted=() enough=yes
if ! command -v chromium-headless-shell >/dev/null; then # without windows it takes a third of the time
  wanted+=(chromium-headless-shell)
  command -v chromium >/dev/null || { wanted+=(fonts-sil-charis fonts-inter fonts-dejavu-core) && enough=no; }
fi
command -v curl >/dev/null || { wanted+=(curl) && enough=no; }
if command -v ldconfig >/dev/null; then
  ldconfig -p | grep 'libatomic\.so\.1' >/dev/null || { wanted+=(libatomic1) && enough=no; }
fi
[ ${#wanted[@]} -gt 0 ] || exit 0

if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
  echo "installing what the tests run with apt-get: ${wanted[*]} …"
  soon=(-qq -o Acquire::Retries=0 -o Acquire::http::Timeout=20)
  apt-get update "${soon[@]}" &&
    apt-get install -y "${soon[@]}" --no-install-recommends "${wanted[@]}" >/dev/null &&
    exit 0
  [ $enough = yes ] || exit 1
  echo "it cannot be installed; the whole Chromium does as well, and takes longer" >&2
elif [ $enough = no ]; then
  echo "the tests need more programs; on Debian: sudo apt-get install ${wanted[*]}" >&2
  exit 2
fi
