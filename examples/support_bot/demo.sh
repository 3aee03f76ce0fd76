#!/usr/bin/env bash
# Tests two releases of a support bot, offline, and compares them.
# VIVA names the command to use, DEMO_STORE the file of its records, both as seen from the root of the project.
set -eu
cd "$(dirname "$0")/../.."
viva=${VIVA:-.venv/bin/viva}
suite=examples/support_bot/suite.yaml
export VIVAVOCE_STORE=${DEMO_STORE:-.vivavoce/demo.db}
if [ -t 1 ]; then bold=$'\033[1m' cyan=$'\033[36m' plain=$'\033[0m'; else bold='' cyan='' plain=''; fi

say() { printf '\n%s%s%s\n' "$bold" "$*" "$plain"; }

# Prints words, those with spaces in quotation marks, so that the line can be typed in.
spelled() { for word; do case $word in *' '*) printf ' "%s"' "$word" ;; *) printf ' %s' "$word" ;; esac; done; }

# Prints a command, runs it, and stops the demo when it does not end with the exit code that is expected.
run() {
    local expected=$1 got=0
    shift
    printf '\n%s$ viva%s%s\n' "$cyan" "$(spelled "$@")" "$plain"
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

say "3. Where did it go wrong? The worst conversation, with the grades of each turn."
run 0 show latest question-before-yes

say "4. Is release 2 worse, or was it luck? Both releases had the same conversations, so they are compared in pairs."
run 0 compare latest~1 latest

say "5. A tester leads a conversation of its own: two mugs were ordered, one is broken, and only that one is to be paid."
goal="EUR 12.45, the price of one mug, is paid back for order 1042"
played="--tester examples/support_bot/customer.py:customer --judge examples/support_bot/customer.py:judge"
# shellcheck disable=SC2086
run 0 test --target examples/support_bot/bot_v1.py:reply --goal "$goal" $played --quiet
# shellcheck disable=SC2086
run 1 test --target examples/support_bot/bot_v2.py:reply --goal "$goal" $played

say "What it found"
cat <<END
Three conversations became worse and none better, in their fourth, second and third turn: the bot forgot an order number,
paid back before the customer said yes, and paid the wrong amount. Yet p is 0.25: twelve conversations are too few to
call the mean lower, so the gate has rules of its own. The fourth fault, a crash, is an error of the bot and never a
score of 0; see it with: $viva show latest~2 not-arrived-yet --store $VIVAVOCE_STORE
The tester here is made of rules, so that no key is needed. A model plays better: --tester openai:gpt-4.1-mini
END

say "What to do next"
printf '  %-48s %s\n' \
    "$viva view --store $VIVAVOCE_STORE" "opens these runs in a browser" \
    "$viva init my-suite" "writes a small suite and a bot to start from" \
    "$viva run my-suite/suite.yaml" "runs it; then put your own bot in its place" \
    "$suite" "shows how this suite was written" \
    README.md "has the rest"
