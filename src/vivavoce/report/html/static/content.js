// Copying what was said as it was written, and going over from marked-up to written words without leaving the page.
const COPIED = 1500;

// What a button copies: a message as it was written, the JSON of a sheet, code as it is.
function sourceOf(place) {
  if (place.matches(".say")) {
    const parts = [...place.children].map((one) => one.matches(".source") ? one.querySelector("pre") : one);
    return parts.filter((one) => one.matches("pre, .plain")).map((one) => one.textContent).join("\n");
  }
  const shown = place.cloneNode(true);
  for (const part of shown.querySelectorAll(".copy, .inner, .more, i")) part.remove();
  const tree = shown.querySelector(".json");
  if (tree) {
    try { return JSON.stringify(JSON.parse(tree.textContent), null, 2); } catch { return tree.textContent; }
  }
  return (shown.querySelector("pre") ?? shown).textContent.trim();
}

// Told to those who do not see the button change; it is there before anything is said in it.
const told = document.createElement("p");
told.className = "vh";
told.setAttribute("role", "status");

async function write(text) {
  await navigator.clipboard.writeText(text);  // a page of plain HTTP has no clipboard
}

async function copy(button) {
  const link = button.matches(".linkto") ? button.parentElement.querySelector("a.no") : null;
  const text = link ? link.href : sourceOf(button.parentElement);
  const said = await write(text).then(() => "Copied", () => "The browser refused");
  button.firstChild.data = said;
  told.textContent = said;
  setTimeout(() => { button.firstChild.data = link ? "Copy link" : "Copy"; told.textContent = ""; }, COPIED);
}

// A button is made when a hand or the focus comes near: a page may have thousands of places to copy.
function offer(event) {
  const place = event.target.closest?.(".code, .sheet, .say");
  if (!place || place.querySelector(":scope > .copy")) return;
  const button = document.createElement("button");
  button.type = "button";
  button.className = "copy";
  button.textContent = "Copy";
  place.append(button);
}

// The letters next to scores lead to the words that can be seen.
function moveAnchors(source) {
  let shown = source.previousElementSibling;
  while (shown && !shown.matches(".rich, .json")) shown = shown.previousElementSibling;
  if (!shown) return;
  const [from, to] = source.open ? [shown, source] : [source, shown];
  for (const mark of from.querySelectorAll("mark[id]")) {
    const letter = mark.querySelector("sup")?.dataset.letter;
    const other = to.querySelector(`sup[data-letter="${letter}"]`)?.closest("mark");
    if (other) { other.id = mark.id; mark.removeAttribute("id"); }
  }
}

function asWritten(link) {
  let open = false;
  link.addEventListener("click", (event) => {
    if (event.metaKey || event.ctrlKey || event.shiftKey) return;
    event.preventDefault();
    open = !open;
    for (const one of document.querySelectorAll("details.source")) one.open = open;
    link.textContent = link.dataset[open ? "back" : "go"];
  });
}

document.addEventListener("mouseover", offer);
document.addEventListener("focusin", offer);
document.addEventListener("click", (event) => { if (event.target.matches?.("button.copy, button.linkto")) copy(event.target); });
document.addEventListener("toggle", (event) => { if (event.target.matches?.("details.source")) moveAnchors(event.target); }, true);
document.addEventListener("DOMContentLoaded", () => document.body.append(told));
document.addEventListener("DOMContentLoaded", () => document.querySelectorAll("a[data-written]:not([data-raw])").forEach(asWritten));
