"""Negations in English and German: what a ban forbids, what a reply denies, and what turns a quote around.

A negation governs the word that follows it, past small words: `not` in `not yet refunded` governs `refunded`. Words
after the governed one deny and assert nothing, so they may be quoted alone: `tickets that are final` from `I can't
refund tickets that are final`. Three kinds of words govern more:

- A word before a noun (`no`, `none of`, `kein`) turns the whole clause around, and so does a negation of a language
  whose verb may come last. Of such a clause, a phrase without a verb may be quoted: `within 30 days`, `der Betrag`.
- A negated word that introduces a statement turns that around: `I don't think that …`.
- In languages with the verb last, the negation follows: `erstatte … nicht`, `返金できません`.

`must_not: ["tell a guest's name"]` and `must_not: ["Never tell a guest's name"]` mean the same. A judge is always asked
whether the assistant did the act; code says what that means for the rule.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from vivavoce.comparing.text import Span, fold
from vivavoce.errors import UsageError


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_CLAUSE_CHARS = 100
"""Characters before and after a quote in which negations are looked for."""
_MAX_WORDS = 5
"""Words between a negation and what it may turn around."""

_BEFORE_VERBS = {
    "English": "not|never|cannot|unable|unwilling|incapable|hardly|barely|scarcely|rarely|seldom|nowhere"
    "|(?:do|does|did|is|are|was|were|ca|wo|could|would|should|has|have|had|ai)nt|n['’ʼ]t"
    r"|(?:fail(?:s|ed|ing)?|refus(?:e|es|ed|ing)|declin(?:e|es|ed|ing)|forg[eo]t(?:s|ten)?|impossible|yet)(?=\s+to\s)"
    "|avoid(?:s|ed|ing)?|(?:stop(?:s|ped)? )?short of|decided against",
    "French": r"ne|n['’](?=[^\W\d_])(?!t(?!\w))|pas|jamais|rien|guère|impossible(?=\s+d(?:e\s|['’]))",
    "Italian, Spanish, Portuguese": r"non(?![-‐‑])|nunca|jamás|tampoco|não|nao",
    "Danish, Norwegian, Swedish": "ikke|ikkje|inte|aldrig|aldri",
}
"""Negations right before the verb that they govern, in languages whose small words are known here."""
_INSTEAD_OF = (
    r"without|instead of|rather than|in lieu of|ohne|statt(?=\s(?:ein|de[rmns]|zu|ihr|sein|mein))|anstatt|anstelle"
    r"|zonder|in plaats van|sans|au lieu d(?:e |u |es |['’])|sin|en (?:lugar|vez) de|em vez de|sem|senza"
    r"|invece d(?:i|el|ella)|utan|uten|uden"
)
"""Negations of the words right after them alone; another clause may follow without a comma."""
_BEFORE_LATE_VERBS = r"nicht|nichts|kein\w*|nie|niemals|niemand|weder|niet|niets|geen|nooit"
"""Negations of German and Dutch, where the verb that they govern may come last."""
_BEFORE_CLAUSES = {
    "English, Spanish": "no(?! (?:dia|seu|sua|site|app|prazo))|none|nor|neither|nobody|nothing|zero",
    "Danish, Norwegian, Swedish": "ej|ingen|ingenting|inga|inget|intet",
    "French, Italian": r"aucun\w*|ni|nessun\w*|né|niente|nulla",
    "Spanish, Portuguese": r"nada|nadie|ning[uú]n\w*|nem|nenhum\w*|ninguém",
    "Finnish": "(?:en|et) (?=ole|voi)|ei|emme|ette|eivät",
    "Polish, Czech, Hungarian, Turkish": "nigdy|bez|ani|nikdy|není|nem|nincs|nélkül|değil|yok|asla|hayır",
    "Russian, Ukrainian, Bulgarian": "не|нет|ни|никогда|нельзя|без|ні|немає|ніколи|нема|няма",
    "Greek": "δεν|δε|μην|μη|όχι|χωρίς|ποτέ",
    "Arabic, Persian, Urdu, Hebrew": "لا|لم|لن|ليس|ليست|غير|بدون|نه|نیست|نہیں|לא|אין|אל|ללא|בלי",
    "Hindi, Indonesian, Vietnamese": "नहीं|नही|मत|बिना|tidak|bukan|belum|jangan|tanpa|không|chưa|chẳng",
}
_BEFORE_STATEMENTS = r"false|untrue|wrong|incorrect|impossible|unlikely|unclear|doubt\w*|den(?:y|ie[sd])|falsch|falso"
"""Words that turn around a statement that follows with a word such as `that`."""
_EXCEPTIONS = (
    r"not (?:only|just)|not to mention|no (?:doubt|problem|worries|later than)|nicht (?:nur|wahr)|ohne zweifel"
    r"|kein zweifel|pas seulement|pas de (?:problème|souci)|sans (?:aucun )?doute|sin (?:embargo|duda)"
    r"|no (?:solo|sólo|solamente)"
    r"|não (?:só|apenas)|sem dúvida|non solo|senza dubbio|niet alleen|ikke bare|inte bara|не только"
)
"""Words of negation that deny nothing after them."""
_SIGN = (
    "(?:[没沒不未無无](?!线|線|动产|動產|错|錯|来|來|关系|關係|过|過|论|論|仅|僅|但)|拒绝|拒絕|勿|并非|並非"
    "|(?<![特分区區级級类類性个個鉴鑒识識辨告离離差])[别別](?![的人处處墅称稱名]))"
)
"""Negations of Chinese and Japanese."""
_SIGNS = rf"{_SIGN}|ない|ません|なかった|안(?= )|않|못|없|아니|ไม่|មិន"
"""Negations of Chinese, Japanese, Korean, Thai, and Khmer, where words need no spaces between them."""

_SMALL_WORDS = {
    "English": (
        "am is are was were be been being has have had having do does did will would can could shall should "
        "may might must get gets got getting going able allowed willing ready due supposed to yet ever even "
        "just so too very all quite at in fact really still also always often now then fully half once twice "
        "longer more much anymore exactly near way any one single of for from on with by as about into the a "
        "an this that these those my your our his her its their me you us him them it i we he she they there "
        "here who which what some each every other such both half"
    ),
    "German, Dutch": (
        "bin ist sind war waren sei habe hat haben hatte werde wird werden wurde wurden worden kann können "
        "konnte konnten muss müssen soll sollen will wollen darf dürfen mehr noch schon sehr ganz so auch "
        "leider hier da zu zum zur im am in an auf aus bei mit nach von vom vor für über unter wegen bis der "
        "die das den dem des ein eine einen einem einer eines mein meine dein deine ihr ihre ihren unser "
        "unsere unseren sie ich du wir er es uns ihnen mir mich dir dich de het een naar voor van te nog"
    ),
    "French": (
        "ai as a avons avez ont avait suis es est sommes êtes sont était sera seront serai été être avoir "
        "peux peut pouvons pouvez peuvent pourrai pourra pu veux veut voulons vais va allons vont dois doit "
        "devons dû fait pas plus jamais rien guère encore bien tout très aussi trop déjà y en se le la les "
        "lui leur vous nous me te de du des d l un une à au aux pour par avec dans sur sous après avant ce "
        "cet cette ces votre notre vos nos mon ma mes son sa ses il elle on ils elles je tu"
    ),
    "Spanish, Italian, Portuguese": (
        "he has ha hemos han había hay fue fueron ser sido es son está están estoy se le lo la los las les me "
        "te nos os ya aún todavía puedo puede podemos pueden voy va vamos van quiero quiere debo debe muy más "
        "tan el un una de del a al en por para con desde hasta su sus tu tus mi mis nuestro nuestra este esta "
        "ese esa yo usted ho hai abbiamo hanno è sono stato stata stati state essere posso può possiamo "
        "possono vi ci mi ti si lo gli ne ancora più molto il i uno di da per nel nella sul della dello dei "
        "suo tuo mio foi foram tem temos têm tenho sou está pode posso podemos vou vai ainda já muito mais o "
        "os as um uma do da no na em seu sua meu minha"
    ),
    "Danish, Norwegian, Swedish": (
        "har hade hadde er var är blev ble bli blir kan kunne vil ville ska skal skulle må enda endnu ännu "
        "helt det den de att å at"
    ),
}
_SMALL = _words(" ".join(_SMALL_WORDS.values()))
_VERBS = _words(
    "is are was were be been being has have had does did will would can could should may might must cannot bin "
    "ist sind war waren habe hat haben hatte wird werden wurde wurden worden kann können konnte muss soll will "
    "darf est sont était sera seront a ont avait peut doit fue fueron es son está están ha han había foi foram é"
)
"""Small words that make a statement of a phrase."""
_PREPOSITIONS = _words(
    "after before for from of on onto with within under over by about via through during at in into until since "
    "between against because outside above below per upon towards across among despite nach vor für von vom aus "
    "bei beim mit auf an am im in über unter wegen bis seit während gegen zwischen zum zur laut après avant pour "
    "de du des sur sous avec dans depuis par chez pendant dès entre después antes para del por con sin desde "
    "hasta sobre durante según bajo em dopo prima di da per con su tra naar voor met op till från för på til fra"
)
_ARTICLES = _words(
    "the a an this these those my your our his her its their any some each every all both other der die das den "
    "dem des ein eine einen einem einer eines mein meine meinen dein deine deinen ihr ihre ihren ihrer ihrem "
    "unser unsere unseren unserer diese dieser dieses diesen alle le la les un une ce cet cette ces votre notre "
    "vos nos mon ma mes son sa ses leur leurs tous toutes el los las una su sus tu tus mi mis nuestro nuestra "
    "nuestros este esta estos estas il lo gli um uma seu sua het een deze onze uw det den de"
)
_SUBJECTS = _words("i we you he she it they ich wir sie er es du ihr je nous vous il elle ils on yo usted io noi")
_LETS = frozenset(("to", "zu", "zum", "à", "de", "d", "att", "å"))
"""Words before an infinitive, which a negation of the verb before it reaches."""
_STATES = re.compile(
    r"(?:think|believ|say|said|claim|know|knew|guess|suppos|mean|impl|guarante|promis|confirm|sure|certain|aware|expect"
    r"|recall|remember|assert|assum|glaub|denk|sag|behaupt|bestätig|weiß|versprech|pens|croi|crois|dis|confirm|garanti"
    r"|cre|dig|pued|penso|credo|dico|acho)\w{0,6}"
)
"""Beginnings of words that introduce a statement, also without a word such as `that`."""
_THAT = "that|if|whether|dass|daß|ob|dat|qu['’]|que|che|что|że|att"
_CONJUNCTION = (
    "and|but|or|then|so|because|although|though|while|whereas|und|oder|sondern|obwohl|aber|dann|weil|et|mais|puis|pero"
    "|porque|car|puisque|perché|poiché|omdat|fordi|eftersom|ma|mas|og|och|men|en|maar|но|ale|ve|ama|(?-i:y|e|i|и|а)"
)
_EDGE = r"(?![^\W_])"
_GAP = r"(?:[^\w.,;:!?…()\[\]{}—–|\n。，、；：！？-]|_|\n(?![\n*•#>|0-9-]))"
"""What may stand between two words of a clause."""
_WORD = r"[^\W_][\w'’-]{0,30}+"
_NEXT_WORD = rf"(?:{_GAP}++(?!(?:{_CONJUNCTION}){_EDGE}){_WORD})"
_NEGATION = re.compile(
    rf"(?P<exception>(?<![^\W_])(?:{_EXCEPTIONS}){_EDGE})"
    rf"|(?:(?<![^\W_])|(?=n['’ʼ]t))(?:(?P<verb>{'|'.join(_BEFORE_VERBS.values())})"
    rf"|(?P<instead>{_INSTEAD_OF})|(?P<late>{_BEFORE_LATE_VERBS})|(?P<clause>{'|'.join(_BEFORE_CLAUSES.values())})|(?P<statement>{_BEFORE_STATEMENTS}))"
    rf"(?:{_EDGE}|(?<=n['’])|(?<=\W))",
    re.IGNORECASE,
)
_ANYWHERE = re.compile(rf"{_NEGATION.pattern}|{_SIGNS}", re.IGNORECASE)
_ASIDE = re.compile(r"\s*(?:,[^,.;:!?\n]{1,40},|\([^()\n]{1,40}\)|[—–-]\s?[^—–.;:!?\n]{1,40}\s[—–-])")
"""Words in commas, brackets, or dashes between a negation and what it governs: `not, in fact, sent`."""
_SAME_CLAUSE = re.compile(rf"(?:{_WORD})?{_NEXT_WORD}{{0,{_MAX_WORDS}}}{_GAP}*", re.IGNORECASE)
_STATEMENT = re.compile(
    rf"(?P<verb>(?:{_WORD})?{_NEXT_WORD}{{0,4}}?){_GAP}*,?{_GAP}+(?:{_THAT}){_EDGE}(?P<rest>{_NEXT_WORD}{{0,8}}{_GAP}*)",
    re.IGNORECASE,
)
_WORDS = re.compile(r"[^\W_][\w'’.,-]*")
_SIGN_BEFORE = re.compile(
    rf"(?P<chinese>{_SIGN})(?P<between>[^\s.,;:!?。，、；：！？]{{0,6}})\Z"
    r"|(?:안|못) \Z|ไม่[^\s.,;:!?]{0,8}\Z|មិន[^\s។]{0,8}\Z"
)
_CHINESE_SMALL = re.compile("[有法能会會可以曾是想要必予再被得足够夠应應该該需用办辦为為给給对對向把将將从從在就到]*")
_CHINESE_VERB_FOLLOWS = re.compile("[为為给給对對向把将將从從]$")
_CHINESE_STATES = re.compile("认为|認為|觉得|覺得|保证|保證|确定|確定|确认|確認|说|說|知道|相信|表示|承诺|承諾")
_CHINESE_NOUN = re.compile("(?:[您你我他她它这這那该該此本贵貴其]|任何|所有).{1,20}|.{1,20}的.{1,12}")
_AFTER = re.compile(
    rf"{_GAP}*(?:not(?! only| just)|never|cannot|n['’ʼ]t|niemals|nie|nooit|aldrig|aldri|pas|jamais|değil|не"
    rf"|नहीं|نہیں){_EDGE}"
    rf"|(?P<last>{_NEXT_WORD}{{0,3}}{_GAP}+(?:nicht(?! nur)|niet|ikke|ikkje|inte){_EDGE})"
    r"|(?!(?>には|とは|へは|[はがもをにへと])(?!し|いたし|でき|あり|ござい|い|おり|お|な|され)[ぁ-ん])[ぁ-ん]{0,6}(?:ない|なかった|なく|ません|かね(?:ます|る))"
    r"|[가-힣]{0,2} ?(?:않|못하|아니|없)|ไม่",
    re.IGNORECASE,
)
"""A negation after a quote in the same clause: `not` after `it was`, `nicht` after `ich zahle`."""
_NEW_CLAUSE = re.compile(rf"(?:{_CONJUNCTION}){_EDGE}", re.IGNORECASE)
_SENTENCE_END = re.compile(r"[.!?](?=\s)|[。！？\n]")


def is_denied_before(text: str, span: Span, start: int = 0) -> bool:
    """Return whether words before a span, not before `start`, turn around what it says."""
    phrase = _Phrase(text[span.start : span.end])
    if phrase.is_name or _NEW_CLAUSE.match(phrase.text):
        return False
    start = max(start, span.start - _CLAUSE_CHARS)
    if _is_denied_by_sign(text, span, start):
        return True
    for negation in _NEGATION.finditer(text, start, span.end):
        if negation.start() >= span.start:
            break
        if negation["exception"]:
            continue
        if negation.end() > span.start or _governs(negation, text, span, phrase):
            return True
    return False


def is_denied_after(text: str, span: Span) -> bool:
    """Return whether words after a span turn around what it says."""
    negation = _AFTER.match(text, span.end, span.end + _CLAUSE_CHARS)
    if negation is None:
        return False
    phrase = _Phrase(text[span.start : span.end])
    return not (negation["last"] and phrase.is_verbless() and phrase.ends_with_noun)


def leaves_out_negation(text: str, start: int, span: Span) -> bool:
    """Return whether what a quote leaves out, from `start` up to a span, turns around what is next to it.

    Whole sentences in it do not.
    """
    ends = [match.end() for match in _SENTENCE_END.finditer(text, start, span.start)]
    if ends and is_denied_before(text, span, ends[-1]):
        return True
    negations = _ANYWHERE.finditer(text, start, ends[0] if ends else span.start)
    return any(not negation["exception"] and not negation["statement"] for negation in negations)


@dataclass(frozen=True, slots=True)
class _Phrase:
    """The words of a quote."""

    text: str

    @property
    def words(self) -> list[str]:
        """Its words as they are written."""
        return _WORDS.findall(self.text)

    @property
    def first(self) -> str:
        """Its first word in lower case, empty if it has none."""
        return next(iter(_lower_words(self.text)), "")

    @property
    def is_name(self) -> bool:
        """Whether it only names or counts something: `A-1042`, `$24.90`."""
        words = self.words
        return bool(words) and all(any(map(str.isdigit, word)) for word in words)

    def is_verbless(self, word_before: str = "") -> bool:
        """Return whether it is a phrase such as `the order` or `within 30 days`, as far as small words show.

        After a preposition, it may begin with any word.
        """
        words = _lower_words(self.text)
        if not words or not _VERBS.isdisjoint(words) or not _SUBJECTS.isdisjoint(words[1:3]):
            return False
        return words[0] in _ARTICLES | _PREPOSITIONS or word_before in _PREPOSITIONS - _LETS

    @property
    def ends_with_noun(self) -> bool:
        """Whether it ends with a noun or a number in German, so without a verb at its end."""
        words = self.words
        return bool(words) and (words[-1][:1].isupper() or words[-1][:1].isdigit())

    @property
    def is_infinitive(self) -> bool:
        """Whether it begins like `to refund`, not like `to the address`."""
        words = self.words
        if self.first not in _LETS or len(words) < 2:
            return False
        return words[1].lower() not in _ARTICLES and words[1][:1].islower()


def _governs(negation: re.Match[str], text: str, span: Span, phrase: _Phrase) -> bool:
    """Return whether a negation turns around the words at a span after it."""
    start = negation.end()
    if negation["verb"] and (aside := _ASIDE.match(text, start, span.start)):
        start = aside.end()
    between = text[start : span.start]
    if _introduces(text[start : span.end], len(between), phrase):
        return True
    if negation["statement"] or not _SAME_CLAUSE.fullmatch(between):
        return False
    if _is_second_half(negation, text) or (_FIRST_HALF.fullmatch(negation[0]) and _SECOND_HALF.fullmatch(phrase.first)):
        return False
    words = _lower_words(between)
    last = words[-1] if words else ""
    if phrase.is_verbless(last) and (not negation["late"] or phrase.ends_with_noun) and last in _PREPOSITIONS:
        return False
    if all(map(_is_small, words)):
        return True
    if any(map(_STATES.fullmatch, words)):
        return not phrase.is_verbless(last)
    if negation["instead"]:
        return phrase.first not in _ARTICLES | _PREPOSITIONS | _SUBJECTS
    if negation["verb"] and words[0] not in _ARTICLES:
        begins_statement = phrase.first in _SUBJECTS and sum(not _is_small(word) for word in words) == 1
        return begins_statement or phrase.is_infinitive or (last in _LETS and phrase.first not in _ARTICLES)
    return not phrase.is_verbless(last) or (bool(negation["late"]) and not phrase.ends_with_noun)


def _introduces(rest: str, length: int, phrase: _Phrase) -> bool:
    """Return whether a negated word before `that` introduces a statement that the quote is in, or begins.

    Args:
        rest: The text from the negation to the end of the quote.
        length: The characters of it that are before the quote.
        phrase: The quote.
    """
    match = _STATEMENT.match(rest[: length + len(phrase.first) + 2])
    if match is None or match.end() < length:
        return False
    words = [*_lower_words(match["rest"]), phrase.first]
    if words[0] in _PREPOSITIONS:  # `do that for …`
        return False
    return sum(not _is_small(word) for word in _lower_words(match["verb"])) <= 1


def _is_second_half(negation: re.Match[str], text: str) -> bool:
    """Return whether a negation is the second half of one that is seen by its first: `pas` of `ne rembourse pas`."""
    is_second = _SECOND_HALF.fullmatch(negation[0]) is not None
    return is_second and _BETWEEN_HALVES.search(text, max(0, negation.start() - 40), negation.start()) is not None


_FIRST_HALF = re.compile("n(?:e|['’])", re.IGNORECASE)
_SECOND_HALF = re.compile("pas|jamais|rien|plus|guère", re.IGNORECASE)
_BETWEEN_HALVES = re.compile(r"(?<![^\W_])n(?:e\s+|['’])[\w'’]+(?:\s+[\w'’]+)?\s+\Z", re.IGNORECASE)


def _lower_words(text: str) -> list[str]:
    return [word.lower().strip(".,_") for word in _WORDS.findall(text)]


def _is_small(word: str) -> bool:
    if word in _SMALL or (_ADVERB.fullmatch(word) and word not in _VERBS_LIKE_ADVERBS):
        return True
    return any(mark in word and word.split(mark)[0] in _ELISIONS and _is_small(word.split(mark)[1]) for mark in "'’")


_ADVERB = re.compile(r"\w{3,}(?:ly|ment|mente)")
_VERBS_LIKE_ADVERBS = frozenset(("apply", "comply", "imply", "multiply", "reply", "supply"))
_ELISIONS = _words("l m t s j d c n")


def _is_denied_by_sign(text: str, span: Span, start: int) -> bool:
    """Return whether a negation in a language without spaces between words stands right before a span."""
    match = _SIGN_BEFORE.search(text, start, span.start)
    if match is None:
        return False
    if not match["chinese"]:
        return True
    between, phrase = match["between"], text[span.start : span.end]
    if _CHINESE_STATES.search(between):
        return True
    if _CHINESE_VERB_FOLLOWS.search(between) and text[span.end : span.end + 1].isalpha():
        return False
    return _CHINESE_SMALL.fullmatch(between) is not None or _CHINESE_NOUN.fullmatch(phrase) is None


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
"""A ban in the passive: "The PIN must never be given away"."""
_GERMAN_NEGATION = re.compile(r"\b(?:niemals|nie|nicht|kein(?:e|en|em|er|es)?)\b\s*", re.IGNORECASE)

_BAN_AS_STATEMENT = re.compile(
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
_PLAIN_WORDS = re.compile(r"[^\W_]+(?:[-'’][^\W_]+)*")
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
        if _BAN_AS_STATEMENT.match(text) or _NEVER.search(" ".join(text.split()[:_FIRST_WORDS])):
            raise ValueError(f"'{rule}' is ambiguous: a ban, or an omission; {_EXAMPLE}")
        return rule
    if not re.search(r"\w", act):
        raise ValueError(f"'{rule}' does not say what is forbidden; {_EXAMPLE}")
    if _EXCEPTION.search(act):
        raise ValueError(f"'{rule}' is a ban with an exception; {_EXAMPLE}, with its case: \"refund without a yes\"")
    if _BAN_AS_STATEMENT.match(act) or _without_ban(act) is not None:
        raise ValueError(f"'{rule}' bans an omission; put the required action into must")
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
    stems, words = _stems(outcome), _stems(goal)
    return _is_known_language(goal) or (bool(stems) and stems <= words and not _LIMIT.search(outcome))


def may_be_told(goal: str, outcome: str) -> bool:
    """Say whether an outcome may be something that a goal wants told, not a state that it wants reached.

    It is a state in an English or German goal without a word of telling. With such a word it is one if the clause of
    the goal that is about it names a state and tells nothing. In another language it may always be something to tell.
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
    """Say whether a clause and a quote share words: one is in the other, except for how the quote is split."""
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
    words = _PLAIN_WORDS.findall(text)
    names = {word for word in words[1:] if word != word.lower() and not re.match(r"I\b", word)}
    return {fold(word) for word in (*names, *(word for word in words if any(map(str.isdigit, word))))}


def _stems(text: str) -> set[str]:
    return {fold(word)[:_STEM] for word in _PLAIN_WORDS.findall(text) if len(word) >= _SHORTEST_WORD}


def _without_ban(text: str) -> str | None:
    """Return a rule without the words that make it a ban, None where it has none."""
    for pattern in (_ENGLISH, _GERMAN_START):
        if match := pattern.match(text):
            return text[match.end() :]
    if match := _GERMAN_NONE.fullmatch(text):
        return match["rest"]
    if match := _PASSIVE.fullmatch(text):
        verb = next(part for name in ("english", "german", "present", "indicative") if (part := match[name]))
        return f"{verb}: {match['object']}"
    if match := _GERMAN_NOBODY.fullmatch(text):
        return f"{match['rest']} {match['verb']}"
    if match := _GERMAN_IMPERATIVE_AT_END.fullmatch(text):
        return " ".join(filter(None, (match["verb"], match["rest"], (match["more"] or "").strip())))
    if (match := _GERMAN_MODAL.match(text)) or (match := _GERMAN_IMPERATIVE.match(text)):
        rest = text[match.end() :]
        if len(_GERMAN_NEGATION.findall(rest)) == 1:
            verb = match.groupdict().get("verb")
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
