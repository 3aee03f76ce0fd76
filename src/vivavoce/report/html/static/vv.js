// What a page does beyond being read: the theme, the keys, and filtering while one types. Without it all links work.
const root = document.documentElement;
root.classList.add("js");
const kept = () => { try { return localStorage.getItem("theme"); } catch { return null; } };
const keep = (theme) => { try { localStorage.setItem("theme", theme); } catch { /* a browser may refuse to keep anything */ } };
if (["light", "dark"].includes(kept())) root.dataset.theme = kept();

const isDark = () => (root.dataset.theme ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";

function themeSwitch(button) {
  const say = () => { button.textContent = isDark() ? "Light mode" : "Dark mode"; };
  button.addEventListener("click", () => { root.dataset.theme = isDark() ? "light" : "dark"; keep(root.dataset.theme); say(); });
  say();
}

const all = (selector) => [...document.querySelectorAll(selector)];
const rows = () => {
  const samples = all(".samples .row");
  return (samples.length ? samples : all(".book .row, .examples .row")).filter((link) => !link.closest("tr, li").hidden);
};

function step(by) {
  const links = rows();
  if (links.length) return links[Math.min(Math.max(links.indexOf(document.activeElement) + by, 0), links.length - 1)].focus();
  const turns = all("article.turn");
  const here = turns.findLastIndex((turn) => turn.getBoundingClientRect().top < 100);
  turns[Math.min(Math.max(here + by, 0), turns.length - 1)]?.scrollIntoView();
}

function toggleTools() {
  const tools = all("details.tool");
  const open = tools.some((tool) => !tool.open);
  for (const tool of tools) tool.open = open;
}

function toggleHelp() {
  const help = document.getElementById("keys");
  if (help.open) help.close(); else help.showModal();
}

const ACTIONS = {
  j: () => step(1),
  k: () => step(-1),
  n: () => document.querySelector("[data-key=n]")?.click(),
  p: () => document.querySelector("[data-key=p]")?.click(),
  t: toggleTools,
  f: () => document.querySelector("[data-key=filter]")?.focus(),
  "/": () => openPalette(),
  "?": toggleHelp,
};

function press(event) {
  if (event.metaKey || event.ctrlKey || event.altKey || document.querySelector("#palette[open]")) return;
  if (/^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName)) {
    if (event.key === "Escape") event.target.blur();
    return;
  }
  const action = ACTIONS[event.key];
  if (!action) return;
  event.preventDefault();
  action();
}

// What stands below belongs to the filter before: that is said, until an answer comes.
function unreachable() {
  const found = document.getElementById("found");
  if (found.querySelector(".unreachable")) return;
  const told = document.createElement("p");
  told.className = "problem unreachable";
  told.setAttribute("role", "alert");
  told.textContent = "The server does not answer; the rows below are those of the previous filter.";
  found.prepend(told);
}

// The rows that the filter lets through are fetched a moment after the last key and put in the place of those shown.
function filterWhileTyping(form) {
  let latest = 0;
  let timer;
  const input = form.querySelector("[data-key=filter]");
  const load = async () => {
    const mine = ++latest;
    const query = new URLSearchParams([...new FormData(form)].filter(([, value]) => value !== ""));
    const address = `${form.getAttribute("action")}${query.size ? `?${query}` : ""}`;
    const answer = await fetch(address).catch(() => null);
    if (answer === null) return mine === latest && unreachable();
    const fetched = new DOMParser().parseFromString(await answer.text(), "text/html").getElementById("found");
    if (mine !== latest || fetched === null) return;
    document.getElementById("found").replaceWith(fetched);
    history.replaceState(null, "", address);
  };
  const soon = () => { clearTimeout(timer); timer = setTimeout(load, 200); };
  input.addEventListener("input", soon);
  if (input.value !== input.defaultValue) soon(); // typed while the page was still loading
}

// Pointing at a letter in the margin lights the words it stands for.
function lightUp(letter) {
  const words = document.getElementById(letter.getAttribute("href").slice(1));
  for (const [event, on] of [["mouseenter", true], ["focus", true], ["mouseleave", false], ["blur", false]]) {
    letter.addEventListener(event, () => words?.classList.toggle("lit", on));
  }
}

document.addEventListener("DOMContentLoaded", () => {
  themeSwitch(document.querySelector(".theme"));
  document.querySelector(".help").addEventListener("click", toggleHelp);
  all("a.ref").forEach(lightUp);
  all("form[data-live]").forEach(filterWhileTyping);
});
addEventListener("keydown", press);
