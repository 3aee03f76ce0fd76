#!/usr/bin/env bash
# Builds a virtual environment: setup.sh FOLDER WHAT-PIP-INSTALLS…
# ALONE names a package that is installed without what it asks for.
set -euo pipefail
folder=$1
shift

python=""
for name in python3.11 python3.12 python3.13 python3.14 python3; do
  if command -v "$name" >/dev/null && "$name" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
    python=$name
    break
  fi
done
[ -n "$python" ] || { echo "vivavoce needs Python 3.11 or newer; on Debian: apt-get install python3 python3-venv" >&2; exit 2; }

if ! "$python" -c 'import ensurepip' 2>/dev/null; then
  # Debian keeps ensurepip in a package of its own.
  if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    echo "this Python cannot make virtual environments: installing python3-venv with apt-get …"
    apt-get update -qq && apt-get install -y -qq python3-venv
  else
    echo "this Python cannot make virtual environments; on Debian: sudo apt-get install python3-venv" >&2
    exit 2
  fi
fi

echo "building $folder with $($python --version) …"
[ -x "$folder/bin/python" ] || "$python" -m venv "$folder"
# Twice quiet says no warnings of package indexes; errors are said. Python compiles what is used when it is first used.
"$folder/bin/python" -m pip install --quiet --quiet --disable-pip-version-check --upgrade 'pip>=25.1'
"$folder/bin/python" -m pip install --quiet --quiet --disable-pip-version-check --no-compile "$@"
[ -z "${ALONE:-}" ] || "$folder/bin/python" -m pip install --quiet --quiet --disable-pip-version-check --no-deps "$ALONE"
touch "$folder/ready"
