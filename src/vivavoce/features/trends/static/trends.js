// Dragging across the plot shows the runs between; without it, the links do the same.
for (const plot of document.querySelectorAll("[data-zoom]")) {
  const runs = [...plot.querySelectorAll("[data-run]")];
  const at = (link) => { const box = link.getBoundingClientRect(); return box.left + box.width / 2; };
  let picked = null;
  let from = 0;

  const place = (event) => event.clientX - plot.getBoundingClientRect().left;

  plot.addEventListener("pointerdown", (event) => {
    if (event.button !== 0 || event.target.closest("a")) return;
    event.preventDefault();
    plot.setPointerCapture(event.pointerId);
    from = place(event);
    picked = document.createElementNS("http://www.w3.org/2000/svg", "rect");
    picked.setAttribute("class", "picked");
    picked.setAttribute("height", "350");
    plot.prepend(picked);
  });

  plot.addEventListener("pointermove", (event) => {
    if (picked === null) return;
    picked.setAttribute("x", Math.min(from, place(event)));
    picked.setAttribute("width", Math.abs(place(event) - from));
  });

  plot.addEventListener("pointerup", () => {
    if (picked === null) return;
    const box = picked.getBoundingClientRect();
    const within = runs.filter((link) => at(link) >= box.left && at(link) <= box.right);
    picked.remove();
    picked = null;
    if (within.length < 2) return;
    const query = new URLSearchParams(location.search);
    query.set("from", within[0].dataset.run);
    query.set("to", within.at(-1).dataset.run);
    location.search = query;
  });

  plot.addEventListener("pointercancel", () => { picked?.remove(); picked = null; });
}
