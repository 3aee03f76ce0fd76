// Keyboard shortcuts of the label queue; each is shown next to its control.
const WORKS = {
  w: () => document.getElementById("why")?.focus(),
  s: () => document.querySelector("[data-key=s]")?.click(),
  u: () => document.querySelector("[data-key=u]")?.click(),
};

function choose(number) {
  const answers = document.querySelectorAll("[data-label] input[name=verdict]");
  const answer = answers[number - 1];
  if (answer) { answer.checked = true; answer.focus(); }
}

addEventListener("keydown", (event) => {
  if (event.metaKey || event.ctrlKey || event.altKey || document.getElementById("keys").open) return;
  const typing = event.target.closest("textarea, select, input:not([type=radio])");
  if (event.key === "Enter") {
    const save = document.querySelector("[data-key=save]");
    if (typing || !save || event.target.closest("a, button, summary") || event.defaultPrevented) return;
    event.preventDefault();
    save.click();
  } else if (typing) {
    return;
  } else if ("123".includes(event.key)) {
    choose(Number(event.key));
  } else if (WORKS[event.key]) {
    event.preventDefault();
    WORKS[event.key]();
  }
});

// The link to label a turn selects that turn in the label form.
document.addEventListener("click", (event) => {
  const link = event.target.closest?.("[data-turn]");
  if (link) document.getElementById("human-label-turn").value = link.dataset.turn;
});

// A turn that is shown later can be chosen in the label form, too.
document.addEventListener("turn-added", (event) => {
  const number = event.detail.querySelector("[data-turn]")?.dataset.turn;
  if (number) document.getElementById("human-label-turn").append(new Option(`turn ${number}`, number));
});
