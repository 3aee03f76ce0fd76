// The search box completes operators and their values, and `/` opens a palette of places. Without it the box is a plain form.
let held;
const names = () => (held ??= fetch("/search/names").then((answer) => (answer.ok ? answer.json() : Promise.reject(answer.status))).catch(() => { held = undefined; return { operators: [], runs: [] }; }));

// A list below a field that the arrows walk through, as ARIA describes a combobox. `offer` returns the options for what
// is in the field: what is shown, a word about it, and what choosing it does.
function combobox(field, list, offer, always) {
  let options = [];
  let at = -1;
  let asked = 0;
  field.setAttribute("role", "combobox");
  field.setAttribute("aria-autocomplete", "list");
  field.setAttribute("aria-controls", list.id);
  list.setAttribute("role", "listbox");
  const point = (to) => {
    at = to;
    [...list.children].forEach((one, place) => one.setAttribute("aria-selected", String(place === at)));
    if (at < 0) return field.removeAttribute("aria-activedescendant");
    field.setAttribute("aria-activedescendant", list.children[at].id);
    list.children[at].scrollIntoView({ block: "nearest" });
  };
  const show = (found) => {
    options = found;
    list.replaceChildren(...found.map((one, place) => {
      const item = document.createElement("li");
      item.id = `${list.id}-${place}`;
      item.setAttribute("role", "option");
      const name = document.createElement("span");
      name.textContent = one.name;
      item.append(name);
      if (one.about) {
        const about = document.createElement("small");
        about.textContent = one.about;
        item.append(" ", about);
      }
      item.addEventListener("mousedown", (event) => event.preventDefault());
      item.addEventListener("click", () => choose(place));
      return item;
    }));
    list.hidden = found.length === 0;
    field.setAttribute("aria-expanded", String(!list.hidden));
    point(always && found.length ? 0 : -1);
  };
  let shown = Promise.resolve();
  const look = () => (shown = offered());
  const offered = async () => {
    const mine = ++asked;
    const found = await offer(field.value, field.selectionStart ?? field.value.length);
    if (mine === asked && (always || document.activeElement === field)) show(found);
  };
  const choose = (place) => { const chosen = options[place]; show([]); chosen.choose(); };
  field.setAttribute("aria-expanded", "false");
  field.addEventListener("input", look);
  field.addEventListener("keydown", (event) => {
    const steps = { ArrowDown: 1, ArrowUp: -1 };
    if (event.key in steps) {
      event.preventDefault();
      if (!options.length) return look();
      const count = options.length;
      point(at < 0 && steps[event.key] < 0 ? count - 1 : (at + steps[event.key] + count) % count);
    } else if (event.key === "Enter" && always && !event.isComposing) {
      event.preventDefault();
      shown.then(() => { if (at >= 0) choose(at); });
    } else if (event.key === "Enter" && at >= 0 && !event.isComposing) {
      event.preventDefault();
      choose(at);
    } else if (event.key === "Tab" && at >= 0 && !always) {
      event.preventDefault();
      choose(at);
    } else if (event.key === "Escape" && options.length && !always) {
      event.preventDefault();
      event.stopPropagation();
      asked++;
      show([]);
    }
  });
  if (!always) field.addEventListener("blur", () => { asked++; show([]); });
  return look;
}

// The operators that begin with the word before the cursor, or after a colon the values of one.
async function completions(field, text, cursor) {
  const word = /(?:^|\s)-?((?:[a-z]+:)?(?:"[^"]*|[^\s"]*))$/i.exec(text.slice(0, cursor))?.[1] ?? "";
  const { operators } = await names();
  const put = (value) => {
    const before = text.slice(0, cursor - word.length) + value;
    field.value = before + text.slice(cursor);
    field.setSelectionRange(before.length, before.length);
    field.focus();
    field.dispatchEvent(new Event("input", { bubbles: true }));
  };
  const [name, typed] = word.includes(":") ? word.split(/:(.*)/s) : [word, null];
  if (typed === null) {
    return operators.filter((one) => name && one.name.startsWith(name.toLowerCase()))
      .map((one) => ({ name: `${one.name}:`, about: one.selects, choose: () => put(`${one.name}:`) }));
  }
  const known = operators.find((one) => one.name === name.toLowerCase());
  const plain = typed.replaceAll('"', "").toLowerCase();
  const values = known?.values.filter((one) => one.replaceAll('"', "").toLowerCase().includes(plain) && one !== typed) ?? [];
  return values.slice(0, 12).map((one) => ({ name: one, choose: () => put(`${name}:${one} `) }));
}

function completing(field) {
  const list = document.createElement("ul");
  list.id = "completions";
  list.className = "options";
  list.hidden = true;
  list.setAttribute("aria-label", "Completions");
  field.parentElement.classList.add("completed");
  field.after(list);
  combobox(field, list, (text, cursor) => completions(field, text, cursor), false);
}

const goTo = (address) => () => { location.href = address; };

// Where the palette leads: the list on this page, the main pages, the newest runs, and a search for what was typed.
async function places(text) {
  const wanted = text.trim().toLowerCase();
  const filter = document.querySelector("[data-key=filter]");
  const pages = [...document.querySelectorAll(".top nav a")].map((one) => ({ name: one.textContent, about: "page", choose: goTo(one.href) }));
  const fixed = [
    ...(filter ? [{ name: "Filter this list", about: "this page", choose: () => { palette().close(); filter.focus(); } }] : []),
    ...pages,
    { name: "Search", about: "conversations, reasons and runs", choose: goTo("/search") },
  ];
  const recent = (await names()).runs.map((one) => ({ name: one.name, about: "run", choose: goTo(one.link) }));
  const fitting = [...fixed, ...recent].filter((one) => one.name.toLowerCase().includes(wanted));
  const search = { name: `Search for ${text.trim()}`, about: "everything", choose: goTo(`/search?q=${encodeURIComponent(text.trim())}`) };
  return wanted ? [...fitting, search] : fitting;
}

let look;
const palette = () => document.getElementById("palette");

function openPalette() {
  const dialog = palette();
  const field = dialog.querySelector("input");
  look ??= combobox(field, dialog.querySelector("ul"), places, true);
  field.value = "";
  dialog.showModal();
  look();
}

document.addEventListener("DOMContentLoaded", () => {
  document.querySelectorAll("[data-key=search]").forEach(completing);
  palette().addEventListener("click", (event) => { if (event.target === palette()) palette().close(); });
});
