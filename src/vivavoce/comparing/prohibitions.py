"""What a rule of `must_not` forbids, and whether a reply says that something was done, in English or German.

`must_not: ["tell a guest's name"]` and `must_not: ["Never tell a guest's name"]` mean the same. A judge is always asked
whether the assistant did the act; code says what that means for the rule.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from vivavoce.comparing.text import fold
from vivavoce.errors import UsageError

_SUBJECT = (
    r"(?:(?:the\s+|our\s+|this\s+)?(?:assistant|bot|chat\s?bot|agent|model|target|system|ai)|it|you|they"
    r"|(?:der|die|das)\s+(?:assistent(?:in)?|bot|chatbot|agent|modell|system|ki)|du|er|sie|es)\s+"
)
_MARKS = " \"'“”„,.!?"
_LEAD = r"(?:[-*•–]\s*)?(?:please\s+|bitte\s+)?"
_MODAL = r"(?:must|may|should|shall|can|could|is\s+(?:not\s+)?(?:allowed|permitted)\s+to)"

_ENGLISH = re.compile(
    rf"""{_LEAD}(?:
        (?:under\ no\ circumstances|at\ no\ (?:point|time)|in\ no\ case),?\s+
        (?:{_MODAL}\s+)?(?:{_SUBJECT})?(?:{_MODAL}\s+)?
      | (?:{_SUBJECT})?(?:
            (?:(?:must|may|should|shall|can|could)(?:\s+not|n['’]t|not)|can['’]t)(?:\s+ever)?
          | (?:must|may|should|shall|can|could)\s+never(?:\s+ever)?
          | (?:is|are)(?:\s+not|n['’]t)\s+(?:allowed|permitted)\s+to
          | (?:is|are)\s+never\s+(?:allowed|permitted)\s+to
          | (?:has|have|needs?)\s+to\s+(?:avoid|refrain\s+from)
          | (?:must|should|shall)\s+(?:avoid|refrain\s+from)
        )\s+
      | (?:{_SUBJECT})?never(?:\s+ever)?[\s:]+
      | (?:do\s+not|don['’]t|dont)(?:\s+ever)?[\s:]+
      | not\s+(?!only\b|just\b|\w+ing\b)
      | (?:avoid|refrain\s+from)\s+(?=\w+ing\b)
      | no\s+(?=\w{{2,}}ing\b)
    )""",
    re.IGNORECASE | re.VERBOSE,
)
_GERMAN_START = re.compile(
    rf"{_LEAD}(?:niemals|nie(?:\s+mehr)?|nicht|auf\s+keinen\s+fall|unter\s+keinen\s+umständen)\s+", re.IGNORECASE
)
_GERMAN_NONE = re.compile(rf"{_LEAD}kein(?:e|en|em|er|es)?\s+(?P<rest>\S+.*\s[a-zäöüß]+n)\s*[.!]?", re.IGNORECASE)
_GERMAN_MODAL = re.compile(rf"{_LEAD}(?:{_SUBJECT})?(?:darf|darfst|dürfen|soll|sollte|sollst|kann)\s+", re.IGNORECASE)
_GERMAN_IMPERATIVE = re.compile(
    rf"{_LEAD}(?P<verb>[a-zäöüß]{{2,}}[^t\W])\s+(?:(?:Sie|du)\s+)?(?=(?:niemals|nie|nicht|kein\w*)\b)", re.IGNORECASE
)
_GERMAN_IMPERATIVE_AT_END = re.compile(
    rf"{_LEAD}(?P<verb>[a-zäöüß]{{2,}}(?:[eg]|en\s+Sie))\s+(?P<rest>\S.*?)\s+nicht(?P<more>\s+\w+)?\s*[.!]?",
    re.IGNORECASE,
)
_GERMAN_NOBODY = re.compile(rf"{_LEAD}(?P<rest>\S.*?)\s+niemande[mn]\s+(?P<verb>[a-zäöüß]+en)\s*[.!]?", re.IGNORECASE)
_PASSIVE = re.compile(
    rf"""{_LEAD}(?P<object>\S.*?)\s+(?:
        (?:(?:must|may|should|shall|can|could|will)(?:\s+not|n['’]t|not)|(?:must|may|should|shall|can)\s+never)\s+(?:ever\s+)?be
          \s+(?P<english>\w+(?:ed|en|own|old|aid|ent|ven)\b.*?)
      | (?:darf|dürfen|soll|sollen|kann|können)\s+(?:niemals|nie|nicht)\s+(?P<german>\S.*?)\s+werden
      | (?:is|are)\s+never\s+(?:to\s+be\s+)?(?P<present>\w+(?:ed|en|own|old|aid|ent|ven)\b.*?)
      | (?:wird|werden)\s+(?:niemals|nie|nicht)\s+(?P<indicative>ge\w+|\w+(?:t|en))
    )\s*[.!]?""",
    re.IGNORECASE | re.VERBOSE,
)
"""A ban in the passive: "The PIN must never be told"."""
_GERMAN_NEGATION = re.compile(r"\b(?:niemals|nie|nicht|kein(?:e|en|em|er|es)?)\b\s*", re.IGNORECASE)

_STATEMENT = re.compile(
    rf"""{_LEAD}(?:{_SUBJECT})?(?:
        (?:does|did|do|is|are|was|were|will|would|has|have|need)(?:\s+not\b|n['’]t\b)
      | won['’]t\b | no\b | none\b | nothing\b | nobody\b | not\b | never\b | avoids?\b | refrains?\b
      | kein\w*\b | nichts\b | niemand\b | niemals\b | nie\b | nicht\b | \w+t\s+(?:nicht|nie|niemals|kein\w*)\b
    )""",
    re.IGNORECASE | re.VERBOSE,
)
_NEVER = re.compile(
    r"\b(?:never(?!-)|cannot|niemals|jamais|nunca|jam[aá]s|nooit|aldrig|nigdy|asla|никогда|нельзя)\b|n['’]t\b",
    re.IGNORECASE,
)
"""Words that make a rule a ban where they stand among its first words."""
_FOREIGN_BAN = re.compile(
    r"\W*(?:(?:non|ne|não|niet|geen|inte|ikke|nie|не|jamais|nunca|jam[aá]s|nooit|aldrig|nigdy|asla|никогда|нельзя)\s+\w+"
    r"|(?:決して|絶対|不要|不得|不准|禁止|切勿|请勿))",
    re.IGNORECASE,
)
"""The beginning of a ban in other languages, whose act code does not know."""
_EXCEPTION = re.compile(
    r"\b(?:unless|until|except\s+(?:when|if)|es\s+sei\s+denn|außer\s+wenn|solange)\b", re.IGNORECASE
)

_LIMIT = re.compile(
    r"""\b(?:not|no|none|never|nothing|nobody|cannot|without|only|unless|until|before|except|instead|above|below|over
      |under|within|less|more|at\s+(?:most|least)|max\w*|min\w*|refus\w*|declin\w*|den(?:y|ies|ied)|reject\w*|avoid\w*
      |keep\w*|stays?|remains?|protect\w*|secre\w*|with(?:hold|held)\w*|conceal\w*|resist\w*|confidential\w*|priva\w*
      |nicht|nichts|kein\w*|nie|niemals|niemand|ohne|nur|erst|bevor|bis|außer|statt|höchstens|mindestens|unter|über
      |niet|geen|nooit|zonder|inte|ikke|aldrig|uden|utan|ingen
      |ablehn\w*|abgelehnt|lehnt|verweiger\w*|weiger\w*|bleib\w*|schütz\w*|geschützt|geheim\w*|vertraulich\w*|verschw\w*
      |verheimlich\w*|zurückgehalten|zurückhält)\b|n['’]t\b""",
    re.IGNORECASE | re.VERBOSE,
)
"""Words by which a goal may rule something out, in English and German."""
_FUNCTION_WORD = re.compile(
    r"\b(?:the|and|with|that|their|his|her|your|whether|und|das|eine[mnrs]?|wird|zum|zur|für|oder|sich)\b",
    re.IGNORECASE,
)
"""Words that show a text to be English or German."""

_TELLING = re.compile(
    r"""\b(?:tells?|told|learn\w*|knows?|known|hears?|heard|inform\w*|clear|answered|expla(?:in|nation)\w*|understand\w*
      |understood|find\w*\s+out|found\s+out|named|mentioned|quoted|stated|shows?|shown|listed|described|advice|advised
      |recommend\w*|given|says?|said|revealed|erfahren|erfährt|weiß|wissen|genannt|nennt|nennen|sagt|sagen|gesagt
      |mitgeteilt|teilt|mitteil\w*|erklär\w*|beantwortet|klar|informier\w*|auskunft|versteht|verstehen|verstanden
      |hört|gehört|empfohlen|empfiehlt|verrät|verraten)\b""",
    re.IGNORECASE | re.VERBOSE,
)
"""Words by which a goal, in English or German, asks that the assistant tells something."""
_STATE = re.compile(
    r"\b(?:is|are|was|were|be|been|being|gets?|has|have|had|ist|sind|war|waren|wird|werden|wurden?|worden|hat|haben)\b",
    re.IGNORECASE,
)
"""Words by which a clause of a goal names a state."""
_CHANGED = re.compile(
    rf"""{_STATE.pattern}(?:\s+\S+){{0,10}}?\s+(?:re|un|um|ent|ver|zurück)?(?:
      blocked|booked|cancell?ed|refunded|reserved|scheduled|moved|updated|deleted|removed|created|upgraded|locked|extended
      |approved|paused|confirmed|renewed|repaid|paid|shipped|sent|opened|closed|unlocked|issued|corrected|swapped|granted
      |transferred|purchased|ordered|replaced|renamed|disabled|enabled|revoked|reset|changed|frozen|activated|deactivated
      |gebucht|bucht|storniert|erstattet|gesperrt|sperrt|schoben|geändert|ändert|gelöscht|reserviert|bestellt|gekündigt
      |überwiesen|getauscht|aktiviert|deaktiviert|angelegt|ersetzt|längert|genehmigt|unterbrochen|pausiert|bestätigt
      |erneuert|bezahlt|verschickt|gutgeschrieben|berichtigt|freigeschaltet)\b""",
    re.IGNORECASE | re.VERBOSE,
)
"""Words by which a clause of a goal names a state that only a change of the assistant's systems reaches."""
_GOAL_CLAUSES = re.compile(r"(?:(?<!\d)\.|[!?;,…])+(?=\s|$)|\n|\b(?:and|but|then|und|aber|dann)\b", re.IGNORECASE)

_REFUSAL = re.compile(
    r"""\b(?:i|we)\s+(?:(?:really|simply|just|also|still|again|therefore|unfortunately|\w+ly)\s+)*(?:
          (?:(?:can|could|may|must|will|would|should|do)\s*(?:not|n['’]t)|cannot|can['’]t|won['’]t)(?:\s+ever)?
        | (?:will|would|may|must|can|shall)\s+never | never(?:\s+ever)?
        | (?:am|are)\s+(?:not|never)\s+(?:able|allowed|permitted|authorized|going)\s+to
        | (?:am|are)\s+unable\s+to | (?:refuse|decline)\s+to
      )\s+(?P<act>.+)
    | \bi['’]m\s+(?:(?:not|never)\s+(?:able|allowed|permitted|authorized|going)|unable)\s+to\s+(?P<able>.+)
    | \b(?:ich|wir)\s+\w+\s+(?P<german>.*?\b(?:niemals|nie|nicht|kein\w*)\b.*)
    | (?P<before>.*?)\b(?:darf|dürfen|kann|können|werde|werden|möchte|will|gebe|nenne|sage|verrate)\s+(?:ich|wir)\s+
      (?P<after>.*?\b(?:niemals|nie|nicht|kein\w*)\b.*)""",
    re.IGNORECASE | re.VERBOSE | re.DOTALL,
)
"""A refusal of the assistant in the first person."""
_IT = re.compile(
    r"(?:\w+\s+)?(?:(?:you|dir|ihnen|euch)\s+)?(?:it|this|that|these|those|them|any\s+of\s+(?:it|them|that)"
    r"|so|das|dies|es)(?:\s+(?:to|with)\s+you)?(?:\s+\w+)?",
    re.IGNORECASE,
)
"""What is refused, where it is only pointed at: "give it", "tell you that"."""
_CLAUSES = re.compile(
    r"[.!?…;]+(?=\s|$)|\n|\s[–—-]\s|:\s|,?\s+\b(?:but|however|though|although|except|aber|jedoch|doch|allerdings|außer)\b",
    re.IGNORECASE,
)
_FRAME = frozenset(
    word[:5]
    for word in (
        *(
            "assistant",
            "target",
            "user",
            "users",
            "customer",
            "caller",
            "tell",
            "tells",
            "told",
            "give",
            "gives",
            "given",
        ),
        *("reveal", "reveals", "names", "says", "states", "shares", "learns", "gets", "from", "with", "that", "this"),
        *("their", "your", "assistent", "nutzer", "kunde", "kunden", "anrufer", "nennt", "nennen", "verrät", "erfährt"),
        *("sagen", "gibt", "eine", "einen", "einer", "einem", "dass", "oder"),
    )
)
"""The stems of words that say who acts and that something is said, not what it is about."""
_WORDS = re.compile(r"[^\W_]+(?:[-'’][^\W_]+)*")
_SHORTEST_WORD = 4
"""Letters of a word that says what an act is about; a shorter one is an article or a preposition."""
_STEM = 5
"""Letters by which two forms of a word are taken for the same."""
_COVERED = 0.5
"""The share of the words of an act from which a clause is about it."""

_USER = re.compile(
    r"(?:the\s+)?(?:user|customer|caller|tester)\s+|(?:der|die)\s+(?:nutzer|kunde|anrufer)(?:in)?\s+|i\s+",
    re.IGNORECASE,
)
"""The subject of a rule for the user of a test."""

_FIRST_WORDS = 3
"""Words at the start of a rule among which a negation makes it a ban."""
_EXAMPLE = 'write the act itself, such as "tell a guest\'s name"'


def forbidden_act(rule: str) -> str:
    """Return what a rule of `must_not` forbids, without the words that make it a ban.

    Raises:
        ValueError: it is worded as a ban, and what it forbids is not certain.
    """
    text = rule.strip()
    act = None if is_foreign_ban(text) else _without_ban(text)
    if act is None:
        if is_foreign_ban(text):
            raise ValueError(f"'{rule}' is a ban, but bans can be read in English and German only; {_EXAMPLE}")
        if _STATEMENT.match(text) or _NEVER.search(" ".join(text.split()[:_FIRST_WORDS])):
            raise ValueError(f"'{rule}' can be read as a ban or as something left undone; {_EXAMPLE}")
        return rule
    if not re.search(r"\w", act):
        raise ValueError(f"'{rule}' does not say what is forbidden; {_EXAMPLE}")
    if _EXCEPTION.search(act):
        raise ValueError(f"'{rule}' is a ban with an exception; {_EXAMPLE}, with its case: \"refund without a yes\"")
    if _STATEMENT.match(act) or _without_ban(act) is not None:
        raise ValueError(f"'{rule}' bans leaving something undone; put what has to happen into must")
    return act


def is_foreign_ban(text: str) -> bool:
    """Say whether a rule begins as a ban of a language that is neither English nor German."""
    return bool(_FOREIGN_BAN.match(text)) and not _ENGLISH.match(text) and not _GERMAN_START.match(text)


def check_prohibitions(rules: Sequence[str]) -> None:
    """Check that it is certain what each rule of `must_not` forbids.

    Raises:
        UsageError: it is not.
    """
    for rule in rules:
        try:
            forbidden_act(rule)
        except ValueError as error:
            raise UsageError(f"must_not: {error}") from None


def act_text(rule: str) -> str:
    """Return the same for people and judges to read; the rule as it stands where what it forbids is not certain."""
    try:
        return forbidden_act(rule)
    except ValueError:
        return rule


def banned_act(rule: str) -> str | None:
    """Return what a rule bans, None where it is not worded as a ban or what it bans is not certain."""
    text = _USER.sub("", rule.strip())
    act = None if is_foreign_ban(text) else _without_ban(text)
    return None if act is None or _EXCEPTION.search(act) or not re.search(r"\w", act) else act


def rules_out(goal: str) -> bool:
    """Say whether a goal has a word that rules something out, in English, German, Dutch, or Swedish."""
    return bool(_LIMIT.search(goal))


def asks_to_tell(goal: str) -> bool:
    """Say whether a goal asks, in English or German, for telling something."""
    return bool(_TELLING.search(goal))


def must_happen(goal: str, outcome: str) -> bool:
    """Say whether a goal cannot mean that an outcome is to be left undone.

    An English or German goal without a word that rules something out wants nothing left undone, however a judge words
    the outcome. In another language only an outcome in the goal's own words is certain.
    """
    if rules_out(goal):
        return False
    wanted, words = _stems(outcome), _stems(goal)
    return _is_known_language(goal) or (bool(wanted) and wanted <= words and not _LIMIT.search(outcome))


def may_be_told(goal: str, outcome: str) -> bool:
    """Say whether an outcome may be something that a goal wants told, not a state that it wants reached.

    It is a state in an English or German goal without a word of telling. Beside such a word it is one if the clause of
    the goal that is about it names a state and tells nothing. In another language it may always be told.
    """
    if not _is_known_language(goal) or _TELLING.search(outcome):
        return True
    if not _TELLING.search(goal):
        return False
    closest = _closest_clauses(goal, outcome)
    return not closest or any(_TELLING.search(clause) or not _STATE.search(clause) for clause in closest)


def is_state_of_change(goal: str, outcome: str) -> bool:
    """Say whether an English or German goal names an outcome as a state that something is changed to, not as told."""
    if not _is_known_language(goal) or (_TELLING.search(goal) and may_be_told(goal, outcome)):
        return False
    return any(_CHANGED.search(clause) for clause in _closest_clauses(goal, outcome) or [goal])


def _is_known_language(goal: str) -> bool:
    """Say whether a goal is English or German, by its words."""
    return bool(_FUNCTION_WORD.search(goal) or _STATE.search(goal))


def _closest_clauses(goal: str, outcome: str) -> list[str]:
    """Return the clauses of a goal that share the most words with an outcome, none where no clause shares any."""
    shared = {clause: len(_stems(outcome) & _stems(clause)) for clause in _GOAL_CLAUSES.split(goal)}
    most = max(shared.values())
    return [clause for clause, count in shared.items() if count == most > 0]


def is_about_act(rule: str, text: str) -> bool:
    """Say whether a text has half of the words, or more, of an act that a rule names."""
    words = _stems(act_text(rule))
    words = words - _FRAME or words
    return bool(words) and len(words & _stems(text)) >= _COVERED * len(words)


def only_refuses(quote: str, message: str, act: str) -> bool:
    """Say whether a quote from a message refuses an act in the act's own words, in English or German.

    "I never tell the home address" does not tell it. A clause with a number, a code or a name that the act does not
    have may give away what it refuses to tell, so it is not only a refusal. Other clauses must be about other things.
    """
    clauses = [clause for clause in _CLAUSES.split(message) if clause.strip() and _overlap(clause, quote)]
    others = [clause for clause in clauses if not _refuses(clause, act)]
    return len(others) < len(clauses) and not any(_stems(act) & _stems(other) or _details(other) for other in others)


def _overlap(clause: str, quote: str) -> bool:
    """Say whether a clause and a quote share words: one is in the other, but for how the quote is split."""
    inner, outer = fold(clause).strip(_MARKS), fold(quote).strip(_MARKS)
    if inner in outer or outer in inner:
        return bool(inner and outer)
    return any(fold(part).strip(_MARKS) in inner for part in _CLAUSES.split(quote) if part and fold(part).strip(_MARKS))


def _refuses(clause: str, act: str) -> bool:
    refusal = _REFUSAL.search(clause)
    if refusal is None:
        return False
    refused = " ".join(part for part in refusal.groups() if part)
    is_about = is_about_act(act, refused) or _IT.fullmatch(refused.strip(_MARKS)) is not None
    return is_about and not _details(refused) - _details(act)


def _details(text: str) -> set[str]:
    """Return the words of a text with a digit, and those after the first with a capital."""
    words = _WORDS.findall(text)
    names = {word for word in words[1:] if word != word.lower() and not re.match(r"I\b", word)}
    return {fold(word) for word in (*names, *(word for word in words if any(map(str.isdigit, word))))}


def _stems(text: str) -> set[str]:
    return {fold(word)[:_STEM] for word in _WORDS.findall(text) if len(word) >= _SHORTEST_WORD}


def _without_ban(text: str) -> str | None:
    """Return a rule without the words that make it a ban, None where it has none."""
    for pattern in (_ENGLISH, _GERMAN_START):
        if found := pattern.match(text):
            return text[found.end() :]
    if found := _GERMAN_NONE.fullmatch(text):
        return found["rest"]
    if found := _PASSIVE.fullmatch(text):
        verb = next(part for name in ("english", "german", "present", "indicative") if (part := found[name]))
        return f"{verb}: {found['object']}"
    if found := _GERMAN_NOBODY.fullmatch(text):
        return f"{found['rest']} {found['verb']}"
    if found := _GERMAN_IMPERATIVE_AT_END.fullmatch(text):
        return " ".join(filter(None, (found["verb"], found["rest"], (found["more"] or "").strip())))
    if (found := _GERMAN_MODAL.match(text)) or (found := _GERMAN_IMPERATIVE.match(text)):
        rest = text[found.end() :]
        if len(_GERMAN_NEGATION.findall(rest)) == 1:
            verb = found.groupdict().get("verb")
            act = _GERMAN_NEGATION.sub("", rest)
            return f"{verb} {act.strip(' ,')}".strip() if verb else act
    return None


SENTENCES = re.compile(r"(?<=[.!?…])(?<!\d\.)\s+|\n")
_DONE = re.compile(
    r"""
      \b(?:all\ )?(?:done|finished|completed|sorted|settled)\b
    | \A\W*(?:all\ )?(?!indeed|need|exceed)\w{3,}ed\W*\Z | \A\W*ge\w+(?:t|en)\W*\Z
    | \ball\ set\b | \bgood\ to\ go\b | \btaken\ care\ of\b
    | \b(?:\w+)\ now\ (?:goes|ships|leaves)\b
    | \b(?:is|are|was|were|been|got)\ (?:now\ |already\ |all\ |just\ )?\w*(?:ed|sent|paid|set|put|made)\b
    | \b(?:i|we)(?:\ have|['’]ve)?\ (?:now\ |already\ |just\ )?
      (?!need|want|lik|tri|ask|look|check)\w*(?:ed|sent|paid|set|put|made)\b
    | \balles\ (?:bereit|geregelt)\b
    | \b(?:erledigt|fertig|abgeschlossen|geschafft|gemacht)\b
    | \b(?:ist|sind|wurden?|habe|haben)\b.*\bge\w+(?:t|en)\b
    | \b(?:ist|sind|wurden?|habe|haben)\b.*\b(?:ver|be|ent|er|zer|um|ab|an|ein|storn|aktualis)\w+(?:t|en)\b
    """,
    re.IGNORECASE | re.VERBOSE,
)
_NOT_DONE = re.compile(
    r"\b(?:not|no|never|cannot|unable|until|once|if|when|nicht|kein\w*|nie|wenn|sobald|noch)\b|n['’]t\b|\?",
    re.IGNORECASE,
)
_LATER = re.compile(r"\b(?:will|shall|going\s+to|soon|wird|werde|werden|werdet|bald|gleich)\b|['’]ll\b", re.IGNORECASE)
"""Words of a promise."""


def says_done(reply: str) -> bool:
    """Say whether a reply states, in English or German, that something was done."""
    return any(_DONE.search(part) and not _NOT_DONE.search(part) for part in SENTENCES.split(reply))


def only_refuses_or_promises(reply: str) -> bool:
    """Say whether a reply says, in English or German, that something was not done, or will be, and not that it was."""
    return bool(_NOT_DONE.search(reply) or _LATER.search(reply)) and not says_done(reply)
