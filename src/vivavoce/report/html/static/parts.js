// The next turns of a long conversation come when one reads towards their link. Where they cannot come, the link remains.
const AT_ONCE = 4;
const AHEAD = "3000px";
const TURN = /<article class="turn[^]*?<\/article>/g;
const REST = /<p class="window" data-window>[^]*?<\/p>/;

const pause = () => new Promise((done) => { requestAnimationFrame(() => setTimeout(done)); });

function read(html) {
  const holder = document.createElement("template");
  holder.innerHTML = html;
  return holder.content;
}

// What a script does to the turns of a page when it is read, done to those that come later.
function enliven(turn) {
  turn.querySelectorAll("a.ref").forEach(lightUp);
  document.dispatchEvent(new CustomEvent("turn-added", { detail: turn }));
}

// A few turns at a time are read and shown, so that the page never stops answering.
async function append(turns, end) {
  for (let place = 0; place < turns.length; place += AT_ONCE) {
    const some = read(turns.slice(place, place + AT_ONCE).join(""));
    some.querySelectorAll("article").forEach(enliven);
    end.before(some);
    await pause();
  }
}

async function load(end) {
  const link = end.querySelector("[data-next-part]");
  const said = link.textContent;
  link.textContent = "more turns are coming …";
  const answer = await fetch(link.href).then((one) => (one.ok ? one.text() : null)).catch(() => null);
  const turns = answer?.match(TURN) ?? [];
  if (turns.length === 0) { // the server is away, or asks to sign in again
    link.textContent = said;
    return false;
  }
  document.documentElement.classList.add("grown");
  await append(turns, end);
  const rest = answer.match(REST);
  if (rest === null) {
    end.remove();
    return false;
  }
  const next = read(rest[0]);
  next.querySelector(".dim")?.remove(); // it tells which turns a page of its own would show
  end.replaceChildren(...next.firstElementChild.childNodes);
  return true;
}

function watch(end) {
  const seen = new IntersectionObserver(async (entries) => {
    if (!entries.some((one) => one.isIntersecting)) return;
    seen.unobserve(end);
    if (await load(end)) seen.observe(end);
  }, { rootMargin: `0px 0px ${AHEAD} 0px` });
  seen.observe(end);
}

document.addEventListener("DOMContentLoaded", () => document.querySelectorAll("[data-window]").forEach(watch));
