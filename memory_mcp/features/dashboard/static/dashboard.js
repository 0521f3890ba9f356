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
