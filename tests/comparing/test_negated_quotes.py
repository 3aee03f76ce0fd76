"""Quotes and negations: a quote never says what the text denies, and a text that denies something may be quoted."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vivavoce.comparing.quotes import QuotedText, read_quote

TURNED_AROUND = {
    "en": [
        ("I did not refund the order.", "refund the order"),
        ("I did not refund the order.", "I did"),
        ("I did not actually refund the order.", "refund the order"),
        ("I have not yet refunded the order.", "refunded the order"),
        ("I haven't been able to refund the order.", "refund the order"),
        ("No valid voucher was sent.", "voucher was sent"),
        ("None of the orders were refunded.", "orders were refunded"),
        ("None of the orders were refunded.", "were refunded"),
        ("Nobody paid the refund.", "paid the refund"),
        ("I failed to refund it.", "refund it"),
        ("I failed to refund it.", "to refund it"),
        ("I have yet to refund it.", "refund it"),
        ("The refund has yet to be paid.", "be paid"),
        ("I was unable to send the voucher.", "send the voucher"),
        ("I am unwilling to refund it.", "to refund it"),
        ("I refuse to refund it.", "refund it"),
        ("Instead of a refund you get a voucher.", "a refund"),
        ("Rather than refund the order, I cancelled it.", "refund the order"),
        ("You can barely return it.", "return it"),
        ("I avoided refunding the order.", "refunding the order"),
        ("I don't think I refunded the order.", "I refunded the order"),
        ("I don't think that the order was shipped.", "the order was shipped"),
        ("I can't confirm that the order was shipped.", "the order was shipped"),
        ("It is not true that I refunded the order.", "I refunded the order"),
        ("It's false that I refunded it.", "I refunded it"),
        ("It was not, as you may think, refunded.", "refunded"),
        ("I did not, in fact, refund it.", "refund it"),
        ("Without paying a fee, you can leave.", "paying a fee"),
        ("I didn't manage to refund it.", "refund it"),
        ("No items in your order were shipped today.", "were shipped today"),
        ("We don't want to refund the order.", "to refund the order"),
        ("You won't be charged.", "be charged"),
        ("It was **not** refunded.", "refunded"),
        ("It was not (yet) refunded.", "refunded"),
        ("I did not — sorry — refund it.", "refund it"),
        ("It is not like I refunded it.", "I refunded it"),
        ("Zero refunds were sent.", "refunds were sent"),
    ],
    "de": [
        ("Ich habe die Bestellung nicht erstattet.", "erstattet"),
        ("Ich habe die Bestellung nicht erstattet.", "Ich habe die Bestellung"),
        ("Es wurde keine Erstattung gezahlt.", "Erstattung gezahlt"),
        ("Ich konnte den Betrag leider nicht mehr erstatten.", "erstatten"),
        ("Ich kann nicht bestätigen, dass der Betrag erstattet wurde.", "der Betrag erstattet wurde"),
        ("Ich sende den Gutschein heute nicht.", "Ich sende den Gutschein"),
        ("Wir haben den Brief nicht an die Adresse geschickt.", "an die Adresse geschickt"),
        ("Der Betrag wurde nie vollständig erstattet.", "vollständig erstattet"),
        ("Statt einer Erstattung gibt es einen Gutschein.", "einer Erstattung"),
        ("Niemand hat erstattet.", "hat erstattet"),
        ("Ohne Erstattung geht es weiter.", "Erstattung"),
        ("Es stimmt nicht, dass ich die Bestellung storniert habe.", "ich die Bestellung storniert habe"),
    ],
    "fr": [
        ("Je n'ai pas remboursé la commande.", "remboursé la commande"),
        ("Je n’ai rien remboursé.", "remboursé"),
        ("Je ne rembourse jamais les billets.", "rembourse jamais les billets"),
        ("Je ne peux pas rembourser la commande.", "rembourser la commande"),
        ("Je ne pense pas que la commande soit partie.", "la commande soit partie"),
        ("La commande n'est pas encore partie.", "partie"),
        ("Aucune commande n'a été remboursée.", "commande n'a été remboursée"),
        ("Sans remboursement, vous perdez tout.", "remboursement"),
        ("Au lieu d'un remboursement, voici un bon.", "un remboursement"),
        ("Ce n'est pas la bonne adresse.", "la bonne adresse"),
    ],
    "es": [
        ("No he devuelto el dinero.", "he devuelto el dinero"),
        ("No se envió el cupón.", "se envió el cupón"),
        ("No puedo devolver el dinero.", "devolver el dinero"),
        ("Nunca envié el cupón.", "envié el cupón"),
        ("Nada fue reembolsado.", "fue reembolsado"),
        ("No creo que el pedido haya llegado.", "el pedido haya llegado"),
        ("Todavía no hemos enviado el pedido.", "hemos enviado el pedido"),
        ("En lugar de un reembolso recibe un vale.", "un reembolso"),
    ],
    "ja": [
        ("返金していません。", "返金してい"),
        ("クーポンを送信しません。", "クーポンを送信"),
        ("返金できません。", "返金"),
        ("返金はいたしかねます。", "返金"),
        ("注文は発送されていません。", "発送され"),
        ("返金はしておりません。", "返金"),
        ("未返金です。", "返金です"),
        ("送料は無料ではありません。", "送料は無料"),
    ],
    "zh": [
        ("我没有退款给您。", "退款给您"),
        ("订单不可退款。", "退款"),
        ("无法退款。", "退款"),
        ("别退款。", "退款"),
        ("还没退款。", "退款"),
        ("我没有为您退款。", "您退款"),
        ("我们拒绝退款。", "退款"),
        ("我不认为您的订单已发货。", "您的订单已发货"),
    ],
    "in support": [
        ("Unfortunately, I wasn't able to process your refund.", "process your refund"),
        ("Your refund hasn't been processed yet.", "processed"),
        ("Your refund hasn't been processed yet.", "been processed"),
        ("We do not currently ship to Norway.", "ship to Norway"),
        ("We don't currently ship to Norway.", "currently ship to Norway"),
        ("I'm afraid this item isn't eligible for a return.", "eligible for a return"),
        ("There is no refund for this ticket.", "refund for this ticket"),
        ("There's no way to cancel the booking.", "to cancel the booking"),
        ("There's no way to cancel the booking.", "cancel the booking"),
        ("Your account was never charged.", "charged"),
        ("I wouldn't say that your order is lost.", "your order is lost"),
        ("It's not possible to change the address.", "change the address"),
        ("It is not possible to change the address.", "to change the address"),
        ("I was not informed that the parcel arrived.", "the parcel arrived"),
        ("I haven't cancelled anything or issued a refund.", "cancelled anything"),
        ("Neither the refund nor the voucher was sent.", "the voucher was sent"),
        ("I'm not allowed to reset your password.", "reset your password"),
        ("I have no record that you were charged twice.", "you were charged twice"),
        ("Nothing has been charged to your card.", "has been charged to your card"),
        ("The agent forgot to cancel it.", "cancel it"),
        ("We decided against refunding the order.", "refunding the order"),
        ("I doubt that it was delivered.", "it was delivered"),
        ("It seems unlikely that the package was delivered.", "the package was delivered"),
        ("The voucher is no longer valid.", "valid"),
        ("The voucher is no longer valid.", "longer valid"),
        ("Leider ist eine Rückgabe nicht möglich.", "möglich"),
        ("Die Zahlung ist noch nicht eingegangen.", "eingegangen"),
        ("Wir können Ihnen das Geld nicht zurückzahlen.", "zurückzahlen"),
        ("Es gibt keinen Hinweis, dass das Paket zugestellt wurde.", "das Paket zugestellt wurde"),
        ("Ich habe niemals zugesagt, die Kosten zu übernehmen.", "zugesagt"),
        ("Votre remboursement n'a pas été effectué.", "été effectué"),
        ("Votre remboursement n'a pas encore été effectué.", "effectué"),
        ("Nous n'avons jamais reçu votre colis.", "reçu votre colis"),
        ("Il est impossible de modifier l'adresse.", "modifier l'adresse"),
        ("Aucun frais ne sera facturé.", "sera facturé"),
        ("Su reembolso no ha sido procesado.", "ha sido procesado"),
        ("Su reembolso aún no ha sido procesado.", "procesado"),
        ("No es posible cambiar la dirección.", "cambiar la dirección"),
        ("Ningún cargo fue realizado.", "cargo fue realizado"),
        ("お客様のご注文はまだ発送しておりません。", "発送して"),
        ("ご返金は承っておりません。", "ご返金は承っており"),
        ("キャンセルはできません。", "キャンセル"),
        ("您的订单尚未发货。", "发货"),
        ("我们不能为您更改地址。", "更改地址"),
        ("目前没有任何退款记录。", "退款记录"),
        ("我没办法取消您的订单。", "取消您的订单"),
    ],
}
HONEST = {
    "en": [
        ("I can't refund tickets that are final.", "tickets that are final"),
        ("I did not refund the order.", "the order"),
        ("I did not refund the order.", "did not refund"),
        ("We don't offer refunds for digital goods.", "refunds for digital goods"),
        ("We can't accept returns after 30 days.", "after 30 days"),
        ("We can't accept returns after 30 days.", "returns after 30 days"),
        ("I don't have access to your order history.", "your order history"),
        ("It doesn't include shipping costs of $5.99.", "shipping costs of $5.99"),
        ("There are no fees for returns within 30 days.", "returns within 30 days"),
        ("There are no fees for returns within 30 days.", "for returns within 30 days"),
        ("I cannot share details about other customers.", "details about other customers"),
        ("I'm not able to see your screen right now.", "your screen"),
        ("I couldn't find an order under ana@x.org.", "an order under ana@x.org"),
        ("I couldn't find an order under ana@x.org.", "under ana@x.org"),
        ("Unfortunately I can't cancel bookings made through an agency.", "bookings made through an agency"),
        ("You won't need the receipt from the store.", "the receipt from the store"),
        ("I could not find A-17 but I refunded A-18.", "I refunded A-18"),
        ("I couldn't locate it, so I cancelled the order.", "I cancelled the order"),
        ("No, your order has shipped.", "your order has shipped"),
        ("No problem! I have refunded your order.", "I have refunded your order"),
        ("There is no doubt that the refund was paid.", "the refund was paid"),
        ("I have not only refunded it but also sent a voucher.", "refunded it"),
        ("Not only did I refund it, I also sent a voucher.", "I also sent a voucher"),
        ("If not delivered by Monday, I will refund it.", "I will refund it"),
        ("Instead of a refund you get a voucher.", "you get a voucher"),
        ("Rather than refund the order, I cancelled it.", "I cancelled it"),
        ("I refunded it, not the other one.", "I refunded it"),
        ("You never paid, yet we shipped it.", "we shipped it"),
        ("We never charge customers who cancel on time.", "customers who cancel on time"),
        ("I won't send the code to a different address.", "to a different address"),
        ("Don't worry, your refund is on its way.", "your refund is on its way"),
        ("I didn't receive the photo you mentioned.", "the photo you mentioned"),
        ("We do not store card numbers on our servers.", "on our servers"),
        ("You have no open orders from Acme Store.", "from Acme Store"),
        ("We cannot deliver at weekends to Norway.", "to Norway"),
        ("We cannot deliver at weekends to Norway.", "at weekends"),
        ("Fees do not apply to an order over 50 euros.", "an order over 50 euros"),
    ],
    "de": [
        ("Ich kann Tickets nicht erstatten, die endgültig sind.", "die endgültig sind"),
        ("Wir erstatten den Betrag nicht nach Ablauf der Frist.", "Ablauf der Frist"),
        ("Der Betrag von 20 € wird nicht erstattet.", "Der Betrag von 20 €"),
        ("Die Bestellung wurde nicht storniert.", "Die Bestellung"),
        ("Es fallen keine Gebühren für Rücksendungen an.", "für Rücksendungen"),
        ("Dein Konto ist nicht gesperrt, sondern aktiv.", "aktiv"),
        ("Kein Problem, ich habe den Betrag erstattet.", "ich habe den Betrag erstattet"),
        ("Der Gutschein wurde gesendet, nicht wahr?", "Der Gutschein wurde gesendet"),
        ("Kein Zweifel, dass der Betrag erstattet wurde.", "der Betrag erstattet wurde"),
        ("Wir konnten die Ware nicht wegen der Verspätung liefern.", "der Verspätung"),
        ("Ich habe die Bestellung nicht erstattet.", "nicht erstattet"),
    ],
    "fr": [
        ("Je n'ai pas remboursé la commande.", "la commande"),
        ("Je ne rembourse pas les billets achetés en ligne.", "les billets achetés en ligne"),
        ("Nous ne pouvons pas accepter les retours après 30 jours.", "les retours après 30 jours"),
        ("Nous ne pouvons pas accepter les retours après 30 jours.", "après 30 jours"),
        ("Pas de problème, j'ai remboursé la commande.", "j'ai remboursé la commande"),
        ("La commande ne sera pas livrée demain.", "La commande"),
        ("Il n'y a pas de frais pour les retours sous 30 jours.", "les retours sous 30 jours"),
        ("Je n'ai pas trouvé votre commande du 3 mai.", "votre commande du 3 mai"),
        ("Je n'ai pas remboursé la commande.", "pas remboursé"),
        ("Sans doute, le colis est parti.", "le colis est parti"),
    ],
    "es": [
        ("No he devuelto el dinero.", "el dinero"),
        ("No aceptamos devoluciones después de 30 días.", "después de 30 días"),
        ("No hay problema, ya reembolsé el pedido.", "ya reembolsé el pedido"),
        ("No encontré su pedido de mayo.", "su pedido de mayo"),
        ("No podemos compartir los datos de otros clientes.", "los datos de otros clientes"),
        ("Sin duda, el pedido ha llegado.", "el pedido ha llegado"),
        ("No solo reembolsé el pedido, también envié un vale.", "reembolsé el pedido"),
        ("Nunca envié el cupón.", "Nunca envié el cupón"),
    ],
    "ja": [
        ("最終販売のチケットは返金できません。", "最終販売のチケット"),
        ("送料はかかりません。", "送料"),
        ("30日を過ぎた返品は受け付けておりません。", "30日を過ぎた返品"),
        ("お客様の注文履歴を確認できません。", "お客様の注文履歴"),
        ("問題ありません。返金しました。", "返金しました"),
        ("返金していません。", "返金していません"),
        ("ご注文はまだ発送されていません。", "ご注文"),
    ],
    "zh": [
        ("我们无法为最终售出的门票退款。", "最终售出的门票"),
        ("我没有收到您的照片。", "您的照片"),
        ("我们不接受三十天后的退货。", "三十天后的退货"),
        ("没问题，已经退款了。", "已经退款了"),
        ("不好意思，订单已发货。", "订单已发货"),
        ("这款商品特别适合您。", "适合您"),
        ("我没有退款给您。", "没有退款"),
        ("不仅退款，还送优惠券。", "退款"),
    ],
    "words of two languages": [
        ("Livraison en deux jours et sans frais.", "deux jours"),
        ("Merci et bonne journée, votre colis est parti.", "bonne journée"),
        ("El pedido llegó en dos días.", "dos días"),
        ("Am 3. Mai wurde der Betrag erstattet.", "wurde der Betrag erstattet"),
        ("Le 3 mai le colis est parti.", "le colis est parti"),
        ("Das Gespräch findet statt am Montag um 10 Uhr.", "am Montag um 10 Uhr"),
        ("Alleen en snel betaald.", "snel betaald"),
        ("The ticket is in the inbox, Ana.", "in the inbox"),
    ],
    "in support": [
        (
            "Unfortunately, I wasn't able to process your refund because the 30-day window has passed.",
            "because the 30-day window has passed",
        ),
        (
            "Unfortunately, I wasn't able to process your refund because the 30-day window has passed.",
            "the 30-day window has passed",
        ),
        ("I can't change the name on a ticket, but I can rebook you for free.", "I can rebook you for free"),
        ("I can't change the name on a ticket, but I can rebook you for free.", "rebook you for free"),
        ("Tickets cannot be refunded once the flight has departed.", "once the flight has departed"),
        ("Tickets cannot be refunded once the flight has departed.", "the flight has departed"),
        ("I don't have a record of order A-1042 in our system.", "order A-1042"),
        ("I don't have a record of order A-1042 in our system.", "in our system"),
        ("You don't need to do anything; the money arrives within 5 days.", "the money arrives within 5 days"),
        ("We never share your e-mail address with third parties.", "your e-mail address"),
        ("We never share your e-mail address with third parties.", "with third parties"),
        ("I'm not a lawyer, so please ask an expert.", "please ask an expert"),
        ("I'm not sure which plan you have. Your invoice lists the Pro plan.", "Your invoice lists the Pro plan"),
        ("There is no fee for the first change; later changes cost $25.", "later changes cost $25"),
        ("There is no fee for the first change; later changes cost $25.", "the first change"),
        ("Nothing else is needed — your booking is confirmed.", "your booking is confirmed"),
        ("Please don't share your password with anyone.", "your password"),
        ("Please don't reply to this message.", "this message"),
        ("It isn't covered by the warranty that came with the laptop.", "the warranty that came with the laptop"),
        ("I can't see the attachment you sent yesterday.", "the attachment you sent yesterday"),
        ("I couldn't verify the card ending in 4242.", "the card ending in 4242"),
        ("I couldn't verify the card ending in 4242.", "card ending in 4242"),
        ("We won't charge the card until the item ships.", "until the item ships"),
        ("This doesn't affect orders placed before May 1.", "orders placed before May 1"),
        ("You can't bring liquids over 100 ml in hand luggage.", "liquids over 100 ml"),
        ("You can't bring liquids over 100 ml in hand luggage.", "in hand luggage"),
        ("I never received the confirmation code from the bank.", "the confirmation code from the bank"),
        ("Not all hotels allow pets, and this one charges 20 euros per night.", "this one charges 20 euros per night"),
        ("I did not cancel order 17. I cancelled order 18 and refunded $12.", "I cancelled order 18 and refunded $12"),
        ("The order hasn't shipped yet, so I cancelled it.", "I cancelled it"),
        ("Leider kann ich die Buchung nicht ändern, weil die Frist abgelaufen ist.", "weil die Frist abgelaufen ist"),
        ("Leider kann ich die Buchung nicht ändern, weil die Frist abgelaufen ist.", "die Frist abgelaufen ist"),
        ("Leider kann ich die Buchung nicht ändern.", "die Buchung"),
        ("Sie müssen keine Gebühr für die erste Änderung zahlen.", "die erste Änderung"),
        ("Wir geben Ihre Daten nicht an Dritte weiter.", "Ihre Daten"),
        ("Ich finde keine Bestellung unter dieser Adresse.", "unter dieser Adresse"),
        ("Ich finde keine Bestellung mit der Nummer 1042.", "mit der Nummer 1042"),
        ("Je ne peux pas modifier la réservation, car le délai est dépassé.", "car le délai est dépassé"),
        ("Je ne peux pas modifier la réservation.", "la réservation"),
        ("Nous ne partageons jamais vos données avec des tiers.", "vos données"),
        ("Je ne trouve pas de commande à votre nom.", "à votre nom"),
        ("No puedo cambiar la reserva porque el plazo ha vencido.", "porque el plazo ha vencido"),
        ("No puedo cambiar la reserva porque el plazo ha vencido.", "el plazo ha vencido"),
        ("No encuentro ningún pedido con ese número.", "con ese número"),
        ("No compartimos sus datos con terceros.", "sus datos"),
        ("期限を過ぎたため、返金できません。", "期限を過ぎたため"),
        ("お客様の個人情報を第三者に提供しません。", "お客様の個人情報"),
        ("返品送料はお客様のご負担となり、当社は負担しません。", "返品送料はお客様のご負担となり"),
        ("因为已超过退款期限，无法退款。", "已超过退款期限"),
        ("我没有找到您的订单A-1042。", "您的订单A-1042"),
        ("我们不会向第三方透露您的信息。", "您的信息"),
        ("很抱歉，我无法查看您昨天发送的附件。", "您昨天发送的附件"),
    ],
}


def is_quoted(text: str, quote: str) -> bool:
    source = QuotedText(text)
    return any(source.find(reading) for reading in read_quote(quote))


def cases(by_language: dict[str, list[tuple[str, str]]]) -> list[tuple[str, str]]:
    return [case for language in by_language.values() for case in language]


@pytest.mark.parametrize(("text", "quote"), cases(TURNED_AROUND))
def test_a_quote_never_says_what_the_text_denies(text: str, quote: str) -> None:
    assert quote in text
    assert not is_quoted(text, quote)
    assert is_quoted(text, text)


@pytest.mark.parametrize(("text", "quote"), cases(HONEST))
def test_words_that_a_negation_does_not_turn_around_may_be_quoted(text: str, quote: str) -> None:
    assert quote in text
    assert is_quoted(text, quote)


@given(
    st.sampled_from(["I did not", "I never", "We can't", "I was unable to", "I failed to", "Je ne", "No"]),
    st.sampled_from(["refund", "send", "rembourse", "devolvemos"]),
    st.sampled_from(["the order", "your parcel", "la commande", "los pedidos"]),
    st.sampled_from(["within 30 days", "from Berlin", "avec le bon", "con su tarjeta"]),
)
def test_what_a_negation_reaches_ends_with_the_verb_after_it(
    negation: str, verb: str, thing: str, addition: str
) -> None:
    text = f"{negation} {verb} {thing} {addition}."
    assert not is_quoted(text, f"{verb} {thing}")
    assert not is_quoted(text, f"{verb} {thing} {addition}")
    assert is_quoted(text, f"{thing} {addition}")
    assert is_quoted(text, addition)


def test_sentences_with_a_negation_may_be_left_out() -> None:
    text = "I refunded it. I can't say more. The voucher was not lost. It was sent."
    assert is_quoted(text, "I refunded it … It was sent")
    assert not is_quoted(text, "I refunded it … lost")


@pytest.mark.parametrize(
    "text",
    [
        "Hi Ana, your order was shipped yesterday and arrives in two days. We refunded €24.90 to your card.",
        "Bonjour Ana, votre commande a été expédiée hier et arrivera en deux jours. Nous avons remboursé 24,90 €.",
        "Hola Ana, su pedido fue enviado ayer y llegará en dos días. Hemos devuelto 24,90 € a su tarjeta.",
        "Hallo Ana, deine Bestellung wurde gestern verschickt und kommt in zwei Tagen an. Wir haben 24,90 € erstattet.",
        "Olá Ana, o seu pedido foi enviado no dia certo e chega em dois dias. Devolvemos 24,90 € no seu cartão.",
        "Hei Ana, tilauksesi lähetettiin eilen ja saapuu kahdessa päivässä. Palautimme 24,90 € kortillesi.",
    ],
)
def test_any_words_of_a_text_without_a_negation_may_be_quoted(text: str) -> None:
    words = text.split()
    for start in range(len(words)):
        for end in range(start + 2, len(words) + 1):
            assert is_quoted(text, " ".join(words[start:end]))
