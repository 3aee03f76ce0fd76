// Live view. The events of a job appear turn by turn in fixed places; parts of a page that is not finished
// are fetched again from time to time. Messages are inserted as text, never as markup.
const PAUSE = 2000;
const KEPT = 60;
const HIDDEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;
const clean = (text) => String(text).replace(HIDDEN, "");
const copy = (id) => document.getElementById(id).content.firstElementChild.cloneNode(true);
const sleep = (time) => new Promise((done) => { setTimeout(done, time); });
const atEnd = (box) => box.scrollHeight - box.scrollTop - box.clientHeight < 40;
const busy = (part) => part.contains(document.activeElement) && document.activeElement !== document.body;

const fetchPage = async () => {
  const answer = await fetch(location.href).catch(() => null);
  return answer?.ok ? new DOMParser().parseFromString(await answer.text(), "text/html") : null;
};

function put(part, fresh) {
  if (busy(part) || part.innerHTML === fresh.innerHTML) return;
  part.replaceChildren(...fresh.childNodes);
  part.className = fresh.className;
}

function announce(text) {
  const place = document.querySelector("[data-ending]");
  if (place !== null && place.textContent !== text) place.textContent = text;
}

// A part with `data-fresh` is replaced as long as the server marks it so: from time to time, or on an event.
async function refresh(parts = "[data-fresh]") {
  const fetched = await fetchPage();
  if (fetched === null) return;
  for (const part of document.querySelectorAll(parts)) {
    const fresh = fetched.getElementById(part.id);
    if (fresh === null) continue;
    put(part, fresh);
    if (!fresh.hasAttribute("data-fresh")) part.removeAttribute("data-fresh");
  }
}

// The figures of a run are updated in place. Its sorted list is updated when the reader asks for it.
async function refreshRun(live) {
  const fetched = await fetchPage();
  if (fetched === null) return;
  for (const selector of live.dataset.parts.split("|")) {
    const [part, fresh] = [document.querySelector(selector), fetched.querySelector(selector)];
    if (part !== null && fresh !== null) put(part, fresh);
  }
  const [found, fresh] = [document.getElementById("found"), fetched.getElementById("found")];
  const button = document.querySelector("[data-newer]");
  const show = () => { document.getElementById("found").replaceWith(fresh); button.hidden = true; };
  if (found.querySelector(".row") === null) show();
  else if (found.innerHTML !== fresh.innerHTML) { button.hidden = false; button.onclick = show; }
  if (fetched.querySelector("[data-parts]") !== null) return;
  live.remove();
  announce(`This run is over: ${document.querySelector(".gate-box h2")?.textContent.trim() ?? ""}.`);
}

async function repeat(selector, act) {
  while (document.querySelector(selector) !== null) {
    const began = performance.now();
    if (!document.hidden) await act(document.querySelector(selector));
    await sleep(Math.max(PAUSE, 5 * (performance.now() - began)));
  }
}

const stateOf = (score) => {
  if (score.state === "error") return "error";
  if (score.state === "skipped") return "skip";
  if ((score.passed ?? null) === null) return "measured";
  return score.passed ? "pass" : "fail";
};
const worst = (states) => ["error", "fail", "pass", "measured", "skip"].find((one) => states.includes(one)) ?? "skip";

class Talks {
  constructor(list) {
    this.list = list;
    this.most = Number(list.dataset.places);
    this.rows = new Map();
    this.left = new Set();
    for (const row of list.children) {
      const { sample, target, trial } = row.dataset;
      this.rows.set(JSON.stringify([sample, target, Number(trial)]), row);
      row.querySelector(".said").scrollTop = 1e9;
    }
  }

  key(news) { return JSON.stringify([news.sample_id, news.target, news.trial]); }

  // Each conversation has a fixed place; the next one replaces a finished one that nobody is reading.
  place(news) {
    const key = this.key(news);
    if (this.rows.has(key)) return this.rows.get(key);
    const row = copy("talk");
    if (this.rows.size < this.most) this.list.append(row);
    else {
      const free = [...this.rows].find(([, one]) => one.classList.contains("over") && !one.matches(":hover, :focus-within"));
      if (free === undefined) { this.left.add(key); this.count(); return null; }
      this.rows.delete(free[0]);
      free[1].replaceWith(row);
    }
    this.left.delete(key);
    this.count();
    this.rows.set(key, row);
    const name = clean(news.sample_id) + (news.trial ? `#${news.trial + 1}` : "");
    row.querySelector("h3 a").textContent = name;
    row.querySelector("h3 small").textContent = clean(news.target);
    row.querySelector(".now").append(copy("st-live"));
    row.querySelector(".said").setAttribute("aria-label", `Messages of ${name}`);
    return row;
  }

  turn(news) {
    const said = this.place(news)?.querySelector(".said");
    if (!said) return;
    const stay = atEnd(said);
    for (const message of news.messages) {
      const line = copy(`say-${["user", "assistant", "tool"].includes(message.role) ? message.role : "system"}`);
      line.querySelector("span").textContent = clean(message.text || message.calls.map((name) => `→ ${name}`).join(" "));
      said.append(line);
    }
    while (said.children.length > KEPT) said.firstElementChild.remove();
    if (stay) said.scrollTop = 1e9;
  }

  graded(news) {
    const row = this.place(news);
    this.left.delete(this.key(news));
    this.count();
    if (!row) return;
    const said = row.querySelector(".said");
    const stay = atEnd(said);
    const states = news.scores.map(stateOf);
    row.classList.add("over");
    row.querySelector(".now").replaceChildren(copy(`st-${worst(states)}`));
    const { run, grading } = this.list.dataset;
    const asked = new URLSearchParams({ id: news.sample_id, trial: news.trial + 1, target: news.target, ...(grading && { grading }) });
    if (run) row.querySelector("h3 a").href = `/runs/${encodeURIComponent(run)}/samples/-?${asked}`;
    row.querySelector(".scores").replaceChildren(...news.scores.slice(0, KEPT).map((score, i) => {
      const line = copy("score");
      if (states[i] !== "pass") line.prepend(copy(`st-${states[i]}`), " ");
      line.querySelector(".mono").textContent = clean(score.name);
      line.querySelector("b").textContent = score.value !== null ? score.value.toFixed(2) : (score.measured ?? null) !== null ? `${score.measured}` : states[i];
      return line;
    }));
    if (stay) said.scrollTop = 1e9;
  }

  count() {
    const more = document.querySelector("[data-more]");
    more.hidden = this.left.size === 0;
    more.textContent = `${this.left.size} more are being held.`;
  }
}

function counts(news) {
  for (const name of ["done", "errors"]) {
    const place = document.querySelector(`[data-count="${name}"]`);
    if (place !== null) place.textContent = news[name].toLocaleString("en");
  }
  const bar = document.querySelector("progress");
  if (bar !== null) bar.value = news.done;
}

function follow(list) {
  const talks = new Talks(list);
  const source = new EventSource(`${list.dataset.events}?after=${list.dataset.seen}`);
  const on = (kind, act) => source.addEventListener(kind, (event) => { const news = JSON.parse(event.data); counts(news); act(news); });
  on("started", (news) => {
    Object.assign(list.dataset, { run: news.job.run, grading: news.job.grading });
    list.classList.toggle("alone", news.planned === 1);
    refresh();
  });
  on("held", (news) => talks.place(news));
  on("turn", (news) => talks.turn(news));
  on("graded", (news) => talks.graded(news));
  on("ended", async (news) => {
    source.close();
    await refresh();
    const verdict = { pass: ", gate passed", fail: ", gate failed", inconclusive: ", inconclusive" }[news.job.status === "finished" && news.job.verdict] ?? "";
    announce(`This job is over: ${news.job.status}${verdict}.`);
  });
}

const list = document.querySelector("[data-events]");
if (list !== null) follow(list);
repeat('[data-fresh="timed"]', () => refresh('[data-fresh="timed"]'));
repeat("[data-parts]", refreshRun);
