"""Where quotes stand: never inside a word or a number, and whatever the markup."""

from __future__ import annotations

import re

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from vivavoce.comparing.numbers import cuts_number
from vivavoce.comparing.quotes import QuotedText, read_quote, without_markup


def quotes(text: str, quote: str) -> list[str]:
    """Return the parts of a text that a quote stands for, in the first way to read it that fits."""
    source = QuotedText(text)
    spans = next((spans for reading in read_quote(quote) if (spans := source.find(reading))), ())
    return [text[start:end] for start, end in spans]


@pytest.mark.parametrize(
    ("text", "quote"),
    [
        ("It costs 12,500 EUR", "12"),
        ("It costs 12,500 EUR", "costs 12"),
        ("It costs 12,500 EUR", "500 EUR"),
        ("It costs 12.50", "costs 12."),
        ("-40 degrees", "40"),
        ("- 40%", "40"),
        ("1'250 francs", "250 francs"),
        ("12 500 rows", "12"),
        ("5k people", "5"),
        ("5 million people", "5"),
        ("5 to 10 million", "5"),
        ("5 Mio. €", "5"),
        ("₹5 lakh", "₹5"),
        ("12万円", "12"),
        ("0.75", "75"),
        ("version 2.10", "version 2"),
        ("version 2.10.3", "2.10"),
        ("on 2026-01-12", "12"),
        ("12 May 2026 it is", "12"),
        ("at 10:24", "10"),
        ("at 10 pm", "at 10"),
        ("call +1 202 555 0147", "555"),
        ("seat 42B-7", "42B"),
        ("order A-17-B", "A-17"),
        ("20 % off", "20"),
        ("10² m", "10"),
        ("5½ hours", "5"),
        ("1/2 cup", "2 cup"),
        ("1e6 rows", "1"),
        ("１２，５００", "１２"),
        ("१,२३४", "२३४"),
        ("٤٢٫٥", "٤٢"),
        ("**12**,500", "12"),
        ("密码47118", "4711"),
    ],
)
def test_a_quote_never_cuts_a_number(text: str, quote: str) -> None:
    assert quotes(text, quote) == []


@pytest.mark.parametrize(
    ("text", "quote"),
    [
        ("the unpaid bill", "paid bill"),
        ("It is impossible to pay", "possible to pay"),
        ("the bill is paid", "the bill is pai"),
        ("confirmed", "conf…"),
        ("unconfirmed request", "…confirmed request"),
        ("a non-refundable fare", "refundable fare"),
        ("a cost-free order", "a cost"),
        ("I can't pay it", "I can"),
        ("I don’t pay it", "I don"),
        ("user_id", "id"),
        ("mail to ana@x.org", "x.org"),
        ("нельзяоплатить", "оплатить"),
        ("Straßenbahn", "Straße"),
        ("2*3", "23"),
        ("snake_case", "snakecase"),
        ("x² is 4", "x2"),
        ("- 40 degrees", "40degrees"),
        ("40 degrees", "- 40 degrees"),
    ],
)
def test_a_quote_never_cuts_a_word_or_loses_a_sign(text: str, quote: str) -> None:
    assert quotes(text, quote) == []


@pytest.mark.parametrize(
    ("text", "quote", "words"),
    [
        ("The capital is **Lyon**.", "capital is Lyon", "capital is **Lyon"),
        ("The capital is Lyon.", "The capital is **Lyon**.", "The capital is Lyon."),
        ("It is _Lyon_ now", "is Lyon now", "is _Lyon_ now"),
        ("Call `redirect` now", "Call redirect now", "Call `redirect` now"),
        ("Call redirect now", "Call `redirect` now", "Call redirect now"),
        ("- Lyon is big\n- Paris, too", "Lyon is big Paris, too", "Lyon is big\n- Paris, too"),
        ("# Result\nPaid.", "Result Paid.", "Result\nPaid."),
        ("这是**里昂**市", "这是里昂市", "这是**里昂**市"),
        ("**_Done_**: paid", "Done: paid", "Done_**: paid"),
        ("It costs **12,500** EUR", "costs 12,500 EUR", "costs **12,500** EUR"),
        ("I paid it.", 'assistant: "I paid it."', "I paid it."),
        ("I paid it.", "[turn 3] assistant: I paid it.", "I paid it."),
        ("I paid it.", '**Assistant:** "I paid it".', "I paid it"),
        ("I paid it.", '"assistant: I paid it."', "I paid it."),
        ("I paid it.", 'turn 3: "I paid it."', "I paid it."),
        ("I paid it.", "“I paid it.”", "I paid it."),
        ("see 2*3*4 and *args", "2*3*4 and *args", "2*3*4 and *args"),
        ("in snake_case", "snake_case", "snake_case"),
        ("Total: 12. Thanks", "Total: 12.", "Total: 12."),
        ("It is -40 now", "-40", "-40"),
        ("密码是4711谢谢。", "4711", "4711"),
        ("5 million people", "5 million", "5 million"),
        ("Paris–Lyon by train", "Lyon by train", "Lyon by train"),
        ("Ana¹ paid", "Ana", "Ana"),
    ],
)
def test_a_quote_may_differ_in_markup_and_name_its_speaker(text: str, quote: str, words: str) -> None:
    assert quotes(text, quote) == [words]


def test_parts_are_found_one_after_another() -> None:
    text = "The CAFE\u0301 is  open; the cafe is closed."
    assert quotes(text, "the café … the") == ["The CAFE\u0301", "the"]
    assert quotes(text, "closed … café") == []


@pytest.mark.parametrize(
    ("quote", "speaker"),
    [
        ("assistant: yes", "assistant"),
        ("User: yes", "user"),
        ('result c0: "yes"', "tool"),
        ('assistant billing: "yes"', "assistant"),
        ("[user] yes", "user"),
        ("yes", ""),
        ("user account: yes", ""),
    ],
)
def test_the_speaker_that_a_quote_names_is_read(quote: str, speaker: str) -> None:
    assert read_quote(quote)[-1].speaker == speaker


@pytest.mark.parametrize(
    ("text", "rendered"),
    [
        ("**a** _b_ `c` ***d***", "a b c d"),
        ("- a\n* b\n## c", "a\nb\nc"),
        ("2*3*4 a_b_c 5* 6* *args", "2*3*4 a_b_c 5* 6* *args"),
        ("- 5 degrees", "- 5 degrees"),
        ("**a\n\nb**", "**a\n\nb**"),
        (r"\*a\*", r"\*a\*"),
    ],
)
def test_markup_is_what_comes_in_pairs_or_begins_a_line(text: str, rendered: str) -> None:
    assert without_markup(text) == rendered


NUMBERS = st.one_of(
    st.integers(-(10**9), 10**9).map(str),
    st.integers(1000, 10**9).map("{:,}".format),
    st.integers(1000, 10**9).map(lambda number: f"{number:,}".replace(",", " ")),
    st.decimals(-10000, 10000, places=2).map(str),
    st.dates().map(str),
    st.times().map(lambda time: f"{time:%H:%M}"),
    st.builds("{}.{}.{}".format, *[st.integers(0, 99)] * 3),
    st.builds(
        "{}{}".format, st.integers(1, 999), st.sampled_from(["k", "M", "%", "€", " million", " Mio.", "kg", "万"])
    ),
    st.builds("{}-{}-{}".format, st.sampled_from("ABC"), st.integers(1, 999), st.sampled_from("XYZ")),
)


@given(NUMBERS, st.data())
def test_no_part_of_a_number_is_a_quote(number: str, data: st.DataObject) -> None:
    text = f"it is {number} now"
    start = data.draw(st.integers(0, len(number) - 1))
    end = data.draw(st.integers(start + 1, len(number)))
    part = number[start:end]
    assume(part.strip(" .,:'-") != number.strip(" .,:'-") and re.search(r"\w", part))
    stands_alone = re.search(rf"(?<![\w.,:'€%-]){re.escape(part.strip())}(?![\w.,:'€%-])", number)
    assume(not stands_alone or cuts_number(text, 6 + start) or cuts_number(text, 6 + end))
    assert quotes(text, part) == []


@pytest.mark.parametrize(
    "number",
    [
        "2 raised to the power of 5",
        "minus 5 million",
        "5 € in million",
        "5 thousand and 500",
        "IBAN DE89 with that 053",
    ],
)
def test_a_number_with_words_in_it_is_not_cut(number: str) -> None:
    text = f"it came on day 7 and is {number} now that 3 are there"
    start = text.index(number)
    cuts = [place for place in range(len(text)) if cuts_number(text, place)]
    assert cuts == list(range(start + 1, start + len(number)))


@given(NUMBERS, st.sampled_from(["it is ", "", "сумма ", "合計"]))
def test_a_whole_number_is_a_quote(number: str, before: str) -> None:
    assert quotes(f"{before}{number} now", number)


WORDS = st.lists(st.text("abcdeéж", min_size=2, max_size=6), min_size=1, max_size=6)


@given(WORDS, st.data())
def test_emphasis_on_either_side_does_not_matter(words: list[str], data: st.DataObject) -> None:
    mark = data.draw(st.sampled_from(["*", "**", "_", "`", "***"]))
    first = data.draw(st.integers(0, len(words) - 1))
    last = data.draw(st.integers(first, len(words) - 1))
    marked = [*words[:first], f"{mark}{' '.join(words[first : last + 1])}{mark}", *words[last + 1 :]]
    plain, emphasized = " ".join(words), " ".join(marked)
    assert quotes(emphasized, plain)
    assert quotes(plain, emphasized)
    assert quotes(f"- {plain}\n- x", f"{emphasized} x")


@given(WORDS, st.data())
def test_a_word_is_never_cut(words: list[str], data: st.DataObject) -> None:
    text = " ".join(words)
    start = data.draw(st.integers(0, len(text) - 1))
    end = data.draw(st.integers(start + 1, len(text)))
    quote = text[start:end].strip()
    assume(quote)
    whole = rf"(?<!\w){re.escape(quote)}(?!\w)"
    assert bool(quotes(text, quote)) is bool(re.search(whole, text))


@given(st.text(max_size=40), st.text(max_size=12))
def test_places_are_in_the_text_and_reading_never_fails(text: str, quote: str) -> None:
    source = QuotedText(text)
    for reading in read_quote(quote):
        spans = source.find(reading)
        assert len(spans) in (0, len(reading.parts))
        assert all(0 <= start < end <= len(text) for start, end in spans)


@pytest.mark.parametrize(
    ("text", "quote"),
    [
        ("It is not refundable.", "It is … refundable"),
        ("It isn't refundable.", "It … refundable"),
        ("Das Geld wurde nicht heute gesendet.", "Das Geld wurde … gesendet"),
        ("钱没有退还给您", "钱…退还给您"),
    ],
)
def test_an_ellipsis_leaves_out_no_negation(text: str, quote: str) -> None:
    assert not any(QuotedText(text).find(each) for each in read_quote(quote))
    assert any(QuotedText("It is really refundable.").find(each) for each in read_quote("It is … refundable"))


@pytest.mark.parametrize(
    ("text", "quote"),
    [
        ("No voucher was sent.", "voucher was sent"),
        ("No valid voucher was sent.", "voucher was sent"),
        ("It was not sent.", "sent"),
        ("It was *not* sent.", "sent"),
        ("It was _not_ sent.", "sent"),
        ("It was not [sent](https://x.org).", "sent"),
        ("It was not\nsent.", "sent"),
        ("It was not sent.", "It was"),
        ("It wasn't sent.", "sent"),
        ("It isnt paid.", "paid"),
        ("I don't think the voucher was sent.", "the voucher was sent"),
        ("I failed to send it.", "send it"),
        ("It is neither paid nor sent.", "sent"),
        ("Es wurde kein Gutschein gesendet.", "Gutschein gesendet"),
        ("Ich sende den Gutschein heute nicht.", "Ich sende den Gutschein"),
        ("Je ne l'ai pas envoyé.", "envoyé"),
        ("Je n'ai pas envoyé le bon.", "envoyé le bon"),
        ("Non è stato inviato.", "è stato inviato"),
        ("No se envió el cupón.", "se envió el cupón"),
        ("Det ble ikke sendt.", "sendt"),
        ("Я не отправил купон.", "отправил купон"),
        ("لم يتم إرسال القسيمة", "يتم إرسال القسيمة"),
        ("कूपन नहीं भेजा", "भेजा"),
        ("Kupon gönderilmiş değil.", "Kupon gönderilmiş"),
        ("优惠券没有发送", "发送"),
        ("クーポンを送信しません", "クーポンを送信"),
        ("쿠폰을 보내지 않았습니다", "쿠폰을 보내지"),
    ],
)
def test_a_quote_leaves_out_no_negation_next_to_it(text: str, quote: str) -> None:
    assert quotes(text, quote) == []
    assert quotes(text, text)


@pytest.mark.parametrize(
    ("text", "quote"),
    [
        ("No, the voucher was sent.", "the voucher was sent"),
        ("No problem: the voucher was sent.", "the voucher was sent"),
        ("Not only was it sent.", "it sent"),
        ("I did not wait. The voucher was sent.", "The voucher was sent"),
        ("It is not paid and the voucher was sent.", "the voucher was sent"),
        ("- not paid\n- voucher sent", "voucher sent"),
        ("The refund was paid without fees.", "The refund was paid"),
        ("Der Gutschein wurde gesendet, nicht wahr?", "Der Gutschein wurde gesendet"),
        ("It was not sent. Later it was sent.", "sent"),
    ],
)
def test_a_negation_of_other_words_does_not_matter(text: str, quote: str) -> None:
    assert quotes(text, quote)


@given(
    WORDS,
    st.sampled_from(
        ["not", "never", "no", "kein", "nicht", "ikke", "pas", "не", "нет", "without", "instead of", "rien"]
    ),
    st.sampled_from(["", "yet", "really been", "déjà", "schon", "le"]),
)
def test_the_words_that_a_negation_governs_are_quoted_only_with_it(
    words: list[str], negation: str, between: str
) -> None:
    assume(not {"a", "e"} & set(words))
    quote = " ".join(words)
    text = " ".join([negation, *between.split(), quote])
    assume(text.count(quote) == 1)
    assert quotes(text, quote) == []
    assert quotes(text, text) == [text]


@given(WORDS, st.sampled_from(["no", "kein", "nicht", "не", "нет", "keine", "nobody", "bez"]), st.data())
def test_a_negation_of_a_clause_governs_all_words_of_it(words: list[str], negation: str, data: st.DataObject) -> None:
    assume(min(map(len, words)) > 2)
    text = " ".join([negation, *words])
    quote = " ".join(words[data.draw(st.integers(0, len(words) - 1)) :])
    assume(text.count(quote) == 1)
    assert quotes(text, quote) == []


@pytest.mark.parametrize(
    ("text", "quote", "words"),
    [
        ("Send a [voucher](https://x.org/v)?", "Send a voucher?", "Send a [voucher](https://x.org/v)?"),
        ("Send a voucher?", "Send a [voucher](https://x.org/v)?", "Send a voucher?"),
        ("See ![a map](m.png 'Map') now", "See a map now", "See ![a map](m.png 'Map') now"),
        ("a [**bold** one](http://a_b_c.x/(d)) here", "a bold one here", "a [**bold** one](http://a_b_c.x/(d)) here"),
        ("cases [1] and [2]", "cases [1] and [2]", "cases [1] and [2]"),
    ],
)
def test_the_address_of_a_link_may_be_left_out(text: str, quote: str, words: str) -> None:
    assert quotes(text, quote) == [words]


@pytest.mark.parametrize(
    ("quote", "turn", "session"),
    [
        ("[turn 2] I paid it.", 2, None),
        ("Turn 12: I paid it.", 12, None),
        ("(turn 3, session 2) assistant: I paid it.", 3, 2),
        ("assistant: I paid it.", None, None),
    ],
)
def test_the_turn_and_the_session_that_a_quote_names_are_read(
    quote: str, turn: int | None, session: int | None
) -> None:
    reading = read_quote(quote)[-1]
    assert (reading.parts, reading.turn, reading.session) == (("I paid it.",), turn, session)


@pytest.mark.parametrize(
    "unit",
    [
        *("*", " *a", " *a _b", "- *a*\n", "**a ", "*_`", "a_ ", "[", "](", "[a](b) *c* ", "# ", "\n\n*a", "- - "),
        *("not a ", "1,", "-", "(", "_a", "[turn 1]", "…", "a … ", "\\u0041", "it's ", "not "),
        " *a" * 9000 + "b_ " * 9000,
    ],
)
def test_a_hostile_text_is_read_in_linear_time(unit: str) -> None:
    text = (unit * 100_000)[:100_000]
    source = QuotedText(text)
    assert len(without_markup(text)) <= len(text)
    for quote in ("secret", "1", "a … a … z", text[:1000]):
        for reading in read_quote(quote):
            assert len(source.find(reading)) in (0, len(reading.parts))
    assert read_quote(text) is read_quote(text)


@pytest.mark.parametrize(
    ("quote", "text"),
    [
        ("Refund: paid", "Fee: none\nRefund: paid"),
        ("although it is late", "It isn't lost although it is late"),
        ("and I refunded A-18", "I did not wait and I refunded A-18"),
        ("your order has shipped", "No - your order has shipped"),
        ("已发货", "无线耳机已发货"),
        ("已退款", "没错我已退款"),
        ("envié el cupón", "Sin embargo envié el cupón"),
        ("A-1042", "I did not receive order A-1042"),
        ("$24.90", "You do not need to pay $24.90"),
    ],
)
def test_a_negation_of_other_words_leaves_a_quote_as_it_is(quote: str, text: str) -> None:
    assert QuotedText(text).find(read_quote(quote)[0])


ADDRESSES = [
    ("Pay at example.com/payback now.", "example.com/payback", ["example.com/pay", "example.com", "com/payback"]),
    ("Write to info@a.dev.", "info@a.dev", ["info@a.de", "info@a", "a.dev", "info"]),
    ("Write to info@a.de.com!", "info@a.de.com", ["info@a.de", "info"]),
    ("Mail my.ana@x.org, please", "my.ana@x.org", ["ana@x.org", "my"]),
    ("(see https://a.de/x)", "https://a.de/x", ["https://a.de", "https"]),
    ("See https://a.de/x?y=1.", "https://a.de/x?y=1", ["https://a.de/x", "y=1"]),
    ("It is in /home/ana/x.", "/home/ana/x", ["/home/ana", "ana"]),
    ("Visit https://a.de/x/ today", "https://a.de/x", ["https://a.de"]),
    ("I know C# and C++.", "C#", ["C"]),
    ("请访问https://a.de/x查看", "https://a.de/x", ["https://a.de"]),
]


@pytest.mark.parametrize(("text", "address", "parts"), ADDRESSES)
def test_a_quote_never_cuts_an_address(text: str, address: str, parts: list[str]) -> None:
    assert quotes(text, address) == [address]
    for part in parts:
        assert quotes(text, part) == []


@given(
    st.builds(
        "{}{}{}".format,
        st.sampled_from(["https://", "www.", "mailto:", "~/", "/"]),
        st.lists(st.text("abc", min_size=1, max_size=4), min_size=1, max_size=3).map(".".join),
        st.lists(st.sampled_from(["/ab", "?a=b", "#c", "&d=e", "/c.html"]), max_size=4).map("".join),
    ),
    st.sampled_from(["", ".", ")", ", then", "!", " now", "> ", '"']),
    st.data(),
)
def test_an_address_is_quoted_whole(address: str, after: str, data: st.DataObject) -> None:
    text = f"see {address}{after}"
    assert quotes(text, address) == [address]
    part = address[: data.draw(st.integers(1, len(address) - 1))]
    assume(part.rstrip(".,:;!?/_~") not in ("", "https", "www", "mailto"))
    assert quotes(text, part) == []


def test_an_address_may_be_quoted_without_its_scheme() -> None:
    assert quotes("see https://a.de/x now", "a.de/x") == ["a.de/x"]
    assert quotes("either/or, Visa/Mastercard, done.Thanks", "Mastercard") == ["Mastercard"]


@pytest.mark.parametrize(
    ("text", "quote"),
    [
        ("it is un**paid** now", "paid"),
        ("it is un`paid` now", "paid"),
        ("it is <b>un</b>paid now", "paid"),
        ("it is un&shy;paid now", "paid"),
        ("it was *n*ot paid", "paid"),
        ("it was <b>not</b> paid", "paid"),
        ("it was not&nbsp;paid", "paid"),
        ("**Hi**, it was not\npaid", "paid"),
        ("it was ~~refunded~~ kept", "refunded"),
        ("it was ~~refunded~~ kept", "~~refunded~~"),
        ("it was ~~refunded~~ kept", "was refunded kept"),
        ("it was <del>refunded</del> kept", "refunded"),
        ("it was <s class='x'>refunded</s> kept", "refunded"),
        ("it was kept <!-- refunded -->", "refunded"),
        ("it was kept <a href='refunded'>here</a>", "refunded"),
        ("it is 5&nbsp;000 €", "5"),
        ("it is 5<b>0</b>", "5"),
    ],
)
def test_a_quote_is_checked_against_what_a_reader_sees(text: str, quote: str) -> None:
    assert quotes(text, quote) == []


@pytest.mark.parametrize(
    ("text", "quote", "words"),
    [
        ("it is un**paid** now", "it is unpaid", "it is un**paid"),
        ("it is <b>un</b>paid now", "is unpaid now", "is <b>un</b>paid now"),
        ("costs ~~$50~~ $40 now", "costs $40 now", "costs ~~$50~~ $40 now"),
        ("costs ~~$50~~ $40 now", "costs ~~$50~~ **$40** now", "costs ~~$50~~ $40 now"),
        ("Total&nbsp;due: 5&nbsp;&euro;", "Total due: 5 €", "Total&nbsp;due: 5&nbsp;&euro;"),
        ("sunny & warm", "sunny &amp; warm", "sunny & warm"),
        ("1. Open it\n2. Tap **Pay**", "Open it Tap Pay", "Open it\n2. Tap **Pay"),
        ("| Tea | $5 |\n|---|---|", "Tea $5", "Tea | $5"),
        ('She said "it is fine" now', "She said 'it is fine' now", 'She said "it is fine" now'),
        ("I paid it, and left", "I paid it.", "I paid it"),
        ("I paid it!", "I paid it.", "I paid it"),
        ("about ~5 to ~9 days", "5 to ~9 days", "5 to ~9 days"),
    ],
)
def test_markup_and_the_last_mark_may_differ(text: str, quote: str, words: str) -> None:
    assert quotes(text, quote) == [words]


def test_a_question_is_not_quoted_as_a_statement() -> None:
    assert quotes("Is it paid? No.", "it paid.") == []
    assert quotes("Is it paid? No.", "Is it paid?") == ["Is it paid?"]


@given(WORDS, st.sampled_from(["~~{}~~", "<del>{}</del>", "<s>{}</s>", "<!-- {} -->"]))
def test_words_that_are_struck_or_hidden_are_not_quoted(words: list[str], mark: str) -> None:
    text = f"xx {mark.format(' '.join(words))} yy"
    assert quotes(text, " ".join(words)) == []
    assert quotes(text, "xx yy") == [text]


@pytest.mark.parametrize(
    ("text", "quote"),
    [
        ("It is $24.90 per kg.", "24.90"),
        ("It is $24.90 per kg.", "24.90 per kg"),
        ("It costs €35 today", "35"),
        ("It costs 35 € today", "35"),
        ("It costs 35€ today", "costs 35"),
        ("Total £1,200 (incl. VAT)", "1,200"),
    ],
)
def test_the_sign_of_a_currency_may_be_left_out(text: str, quote: str) -> None:
    assert quotes(text, quote) == [quote]


@pytest.mark.parametrize(
    ("text", "quote"),
    [
        ("It is $5.00", "5"),
        ("It is $15", "5"),
        ("It is $5,000", "5"),
        ("It is $5,000", "000"),
        ("It is -$5", "5"),
        ("It is $5 million", "5"),
        ("It is $5k", "5"),
        ("It is 20%", "20"),
        ("It is $5-$10", "10"),
        ("It is 12,50 €", "50"),
    ],
)
def test_without_its_currency_an_amount_is_whole(text: str, quote: str) -> None:
    assert quotes(text, quote) == []
