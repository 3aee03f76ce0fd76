#!/usr/bin/env bash
# Makes sure that the pages can be tested and drawn: a Chromium, and the faces that they are designed for.
set -euo pipefail
command -v chromium >/dev/null && exit 0
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
  echo "no Chromium here: installing it with apt-get …"
  apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium fonts-sil-charis fonts-inter fonts-dejavu-core >/dev/null
else
  echo "the tests of the pages need Chromium; on Debian: sudo apt-get install chromium fonts-sil-charis fonts-inter" >&2
  exit 2
fi
