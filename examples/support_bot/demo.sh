#!/usr/bin/env bash
# Examines two releases of a support bot, offline, and compares them.
# VIVA names the command to use, DEMO_STORE the file of its records, both as seen from the root of the project.
set -eu
cd "$(dirname "$0")/../.."
viva=${VIVA:-.venv/bin/viva}
suite=examples/support_bot/suite.yaml
export VIVAVOCE_STORE=${DEMO_STORE:-.vivavoce/demo.db}
if [ -t 1 ]; then bold=$'\033[1m' cyan=$'\033[36m' plain=$'\033[0m'; else bold='' cyan='' plain=''; fi

say() { printf '\n%s%s%s\n' "$bold" "$*" "$plain"; }

# Prints a command, runs it, and stops the demo when it does not end with the exit code that is expected.
run() {
    local expected=$1 got=0
    shift
    printf '\n%s$ viva %s%s\n' "$cyan" "$*" "$plain"
    "$viva" "$@" || got=$?
    if [ "$got" -ne "$expected" ]; then
        echo "The demo went wrong: exit code $got where $expected was expected." >&2
        exit 1
    fi
}

rm -f "$VIVAVOCE_STORE" "$VIVAVOCE_STORE"-*

say "1. Release 1 of the bot holds 12 conversations. Every turn is graded; the gate passes, and viva exits with 0."
run 0 run "$suite" --quiet

say "2. Release 2 has four small changes. Each looks harmless; the gate fails, and viva exits with 1."
run 1 run "$suite" --target examples/support_bot/bot_v2.py:reply --quiet

say "3. Where did it go wrong? The worst conversation, with the grades of each turn (turns count from 0)."
run 0 show latest question-before-yes

say "4. Is release 2 worse, or was it luck? Both releases had the same conversations, so they are compared in pairs."
run 0 compare latest~1 latest

say "What it found"
cat <<END
Three conversations became worse and none better, in their fourth, second and third turn: the bot forgot an order number,
paid back before the customer said yes, and paid the wrong amount. Yet p is 0.25: twelve conversations are too few to
call the mean lower, so the gate has rules of its own. The fourth fault, a crash, is an error of the bot and never a
score of 0; see it with: $viva show latest not-arrived-yet --store $VIVAVOCE_STORE
END

say "What to do next"
printf '  %-48s %s\n' \
    "$viva init my-exam" "writes a small suite and a bot to start from" \
    "$viva run my-exam/suite.yaml" "runs it; then put your own bot in its place" \
    "$suite" "shows how this exam was written" \
    README.md "has the rest"
