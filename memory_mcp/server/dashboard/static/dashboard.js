// What makes the pages quicker to use; each works without it. Other scripts and data are never inline (see the content security policy).
"use strict";

const isTyping = (element) => element.closest("input, textarea, select, [contenteditable]");

// "/" goes to the search, as on many sites.
document.addEventListener("keydown", (event) => {
  const search = document.querySelector("input[type=search]");
  if (event.key === "/" && search && !event.ctrlKey && !event.metaKey && !event.altKey && !isTyping(event.target)) {
    event.preventDefault();
    search.focus();
    search.select();
  }
});

// One checkbox for all rows. The table is replaced by searches, so the document listens.
document.addEventListener("change", (event) => {
  if (event.target.matches("[data-select-all]")) {
    for (const box of event.target.closest("table").querySelectorAll("input[name=key]")) {
      box.checked = event.target.checked;
    }
  }
});

const showSelectAll = () => document.querySelectorAll("[data-select-all]").forEach((box) => { box.hidden = false; });
showSelectAll();
document.addEventListener("htmx:after:swap", showSelectAll);

// A file is sent piece by piece, so that it may be of any size and the bar says how far it is.
const PIECE = 200_000;
const COUNTS = ["stored", "already_known", "revised", "refused"];

async function* piecesOf(file) {
  const decoder = new TextDecoder();
  let rest = "";
  for (let start = 0; start < file.size; start += PIECE) {
    const bytes = await file.slice(start, start + PIECE).arrayBuffer();
    rest += decoder.decode(bytes, { stream: start + PIECE < file.size });
    const end = start + PIECE < file.size ? rest.lastIndexOf("\n") + 1 : rest.length;
    yield [rest.slice(0, end), Math.min(1, (start + PIECE) / file.size)];
    rest = rest.slice(end);
  }
}

async function importFile(form, file) {
  const bar = form.querySelector("progress");
  const status = form.querySelector("[role=status]");
  const counted = {};
  const refused = [];
  let line = 0;
  bar.hidden = false;
  for await (const [lines, share] of piecesOf(file)) {
    const fields = new URLSearchParams(new FormData(form));
    fields.set("lines", lines);
    fields.set("part", "1");
    const response = await fetch(form.action, { method: "POST", body: fields });
    const answer = (response.headers.get("content-type") || "").includes("json") ? await response.json() : { error: response.statusText };
    for (const name of COUNTS) {
      counted[name] = (counted[name] || 0) + (answer[name] || 0);
    }
    refused.push(...(answer.errors || []).map((error) => `${line + error.line}: ${error.reason}`));
    line += lines.split("\n").length - 1;
    bar.value = share;
    const summary = COUNTS.filter((name) => counted[name]).map((name) => `${form.dataset[name]}: ${counted[name]}`);
    status.textContent = [...summary, ...refused.slice(0, 20), answer.error || ""].join("\n");
    if (!response.ok) {
      return;
    }
  }
}

for (const form of document.querySelectorAll("[data-import]")) {
  form.querySelector("[data-with-script]").hidden = false;
  form.addEventListener("submit", (event) => {
    const [file] = form.querySelector("input[type=file]").files;
    if (file) {
      event.preventDefault();
      importFile(form, file);
    }
  });
}
