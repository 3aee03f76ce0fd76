// The head of each printed page: where it is from, and the day it was printed. Without it the first page still says so.
const sheet = new CSSStyleSheet();
const spelled = (text) => `"${[...text].map((sign) => `\\${sign.codePointAt(0).toString(16)} `).join("")}"`;

function headOfPages() {
  const crumb = document.querySelector(".crumb")?.textContent ?? document.title;
  const from = crumb.replace(/\s+/g, " ").replace(/^ ?Runs \/ /, "").trim().slice(0, 120);
  const day = new Date().toLocaleDateString("en-GB", { day: "numeric", month: "long", year: "numeric" });
  const face = "font: 8pt sans-serif; color: #555;";
  sheet.replaceSync(`@page { @top-left { content: ${spelled(from)}; ${face} } @top-right { content: ${spelled(`printed ${day}`)}; ${face} } }`);
}

addEventListener("load", () => { // the words of a date take longer to look up than many a page takes to draw
  document.adoptedStyleSheets.push(sheet);
  headOfPages();
});
addEventListener("beforeprint", headOfPages);
