"""Quotes and negations: a quote never says what the text denies, and a text that denies something may be quoted."""

from __future__ import annotations

import pytest

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
