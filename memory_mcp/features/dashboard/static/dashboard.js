// What makes the pages quicker to use; each works without it. Other scripts and data are never inline (see the content security policy).
"use strict";

const isTyping = (element) => element.closest("input:not([type=checkbox], [type=radio]), textarea, select, [contenteditable]");

// "/" goes to the search of the page, or opens the one for everything, as Ctrl+K and ⌘K always do.
const palette = document.getElementById("palette");
const openPalette = () => {
  palette.showModal();
  palette.querySelector("input").select();
};
document.addEventListener("keydown", (event) => {
  if (event.key.toLowerCase() === "k" && (event.ctrlKey || event.metaKey) && !event.altKey && !event.shiftKey && palette) {
    event.preventDefault();
    palette.open ? palette.close() : openPalette();
    return;
  }
  if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
  const search = document.querySelector("main input[type=search]");
  if (!search && !palette) return;
  event.preventDefault();
  search ? search.select() : openPalette();
});
if (palette) {
  const input = palette.querySelector("input");
  document.querySelector("[data-palette]").addEventListener("click", (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    openPalette();
  });
  palette.querySelector("[data-close]").addEventListener("click", () => palette.close());
  palette.addEventListener("click", (event) => { if (event.target === palette) palette.close(); });
  // Enter goes to the first of what is found for the words as they stand, also if that is still to come.
  let isAwaited = false;
  const isShown = () => palette.querySelector(".found").dataset.q === input.value.trim();
  const goToFirst = () => {
    isAwaited = !isShown();
    if (!isAwaited) palette.querySelector(".found a")?.click();
  };
  palette.addEventListener("submit", (event) => {
    event.preventDefault();
    goToFirst();
  });
  document.addEventListener("htmx:after:swap", () => { if (isAwaited) goToFirst(); });
  palette.addEventListener("keydown", (event) => {
    if (event.key !== "ArrowDown" && event.key !== "ArrowUp") return;
    event.preventDefault();
    const stops = [input, ...palette.querySelectorAll(".found a")];
    const next = stops.indexOf(document.activeElement) + (event.key === "ArrowDown" ? 1 : -1);
    stops[(next + stops.length) % stops.length].focus();
  });
}

// One checkbox for all rows. The table is replaced by searches, so the document listens.
document.addEventListener("change", (event) => {
  if (event.target.matches("[data-select-all]")) {
    for (const box of event.target.closest("table").querySelectorAll("input[name=key]")) {
      box.checked = event.target.checked;
    }
  }
  if (event.target.closest("[data-rows]")) countSelected();
});
const countSelected = () => {
  const count = document.querySelectorAll("[data-rows] input[name=key]:checked").length;
  const said = document.querySelector("[data-count]");
  if (said) said.textContent = count ? said.dataset.count.replace("{count}", count) : "";
  document.querySelector(".bulk")?.classList.toggle("on", count > 0);
};

const showSelectAll = () => document.querySelectorAll("[data-select-all], [data-keys]").forEach((box) => { box.hidden = false; });
showSelectAll();
document.addEventListener("htmx:after:swap", showSelectAll);

// What has happened without another page, with a way back.
const toast = (text, undo) => {
  document.querySelector(".toast")?.remove();
  const shown = document.getElementById("toast").content.firstElementChild.cloneNode(true);
  shown.querySelector("span").textContent = text;
  const button = shown.querySelector("button");
  button.hidden = !undo;
  button.addEventListener("click", () => { shown.remove(); undo(); });
  document.body.append(shown);
};

// The list of memories by keyboard: j and k move, and the one that has the focus is shown beside the list.
const ROW = "[data-rows] tbody tr";
const preview = document.getElementById("preview");
const isWide = matchMedia("(min-width: 75rem)");
let previewed = null;
const showPreview = async (key) => {
  if (!preview || !isWide.matches || previewed === key) return;
  previewed = key;
  const answer = await fetch(`${preview.dataset.address}?key=${encodeURIComponent(key)}`).catch(() => null);
  if (!answer?.ok || previewed !== key) return;
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  preview.replaceChildren(...["memory-head", "memory-open", "memory-about"].map((id) => page.getElementById(id)).filter(Boolean));
  preview.querySelector("#memory-open")?.removeAttribute("hidden");
};
if (preview) {
  const adapt = () => { preview.hidden = !isWide.matches || !document.querySelector(ROW); };
  adapt();
  isWide.addEventListener("change", adapt);
  document.addEventListener("htmx:after:swap", adapt);
}
const rowOf = (element) => element.closest?.(ROW);
const mark = (row) => {
  document.querySelectorAll(`${ROW}.current`).forEach((other) => other.classList.remove("current"));
  row?.classList.add("current");
  if (row) showPreview(row.dataset.key);
};
document.addEventListener("focusin", (event) => { if (rowOf(event.target)) mark(rowOf(event.target)); });

const formOf = (row) => row.closest("form");
const post = (address, fields) => {
  const body = new URLSearchParams(fields);
  body.append("form_key", document.querySelector("input[name=form_key]").value);
  return fetch(address, { method: "POST", body }).catch(() => null);
};
let undoLast = null;
const forgetRows = async (rows) => {
  const form = formOf(rows[0]);
  if (!form || !form.action.endsWith("/forget")) return;
  const keys = rows.map((row) => row.dataset.key);
  const next = rows.at(-1).nextElementSibling ?? rows[0].previousElementSibling;
  const answer = await post(form.action, keys.map((key) => ["key", key]));
  if (!answer?.ok) return;
  rows.forEach((row) => { row.hidden = true; row.querySelector("input[name=key]").checked = false; });
  next?.querySelector("td.text a")?.focus();
  countSelected();
  undoLast = async () => {
    undoLast = null;
    const back = await post(form.action.replace(/forget$/, "restore"), keys.map((key) => ["key", key]));
    if (!back?.ok) return;
    rows.forEach((row) => { row.hidden = false; });
    rows[0].querySelector("td.text a").focus();
    toast(document.getElementById("toast").dataset.restored);
  };
  toast(document.getElementById("toast").dataset.forgotten.replace("{count}", keys.length), undoLast);
};
const onRow = {
  e: (row) => { if (row.dataset.edit) location.assign(row.dataset.edit); },
  r: (row) => { if (row.dataset.replace) location.assign(row.dataset.replace); },
  x: (row) => row.querySelector("input[name=key]")?.click(),
  "#": (row) => {
    const chosen = [...document.querySelectorAll(ROW)].filter((one) => one.querySelector("input[name=key]:checked"));
    forgetRows(chosen.length ? chosen : [row]);
  },
};
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target) || document.querySelector("dialog[open]")) return;
  const rows = [...document.querySelectorAll(ROW)].filter((row) => !row.hidden);
  if (!rows.length && event.key !== "u") return;
  const current = rows.findIndex((row) => row.classList.contains("current"));
  if (event.key === "j" || event.key === "k") {
    const next = rows[Math.min(rows.length - 1, Math.max(0, current + (event.key === "j" ? 1 : -1)))];
    next.querySelector("td.text a").focus();
    next.scrollIntoView({ block: "nearest" });
  } else if (event.key === "u") undoLast?.();
  else if (event.key === "?") document.getElementById("keys")?.showModal();
  else if (current >= 0 && onRow[event.key]) onRow[event.key](rows[current]);
  else return;
  event.preventDefault();
});
// A line to paste elsewhere.
for (const button of document.querySelectorAll("[data-copy]")) {
  button.hidden = !navigator.clipboard;
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(document.getElementById(button.dataset.copy).textContent);
    toast(button.dataset.done);
  });
}

// Settings by a part of their words or of their key.
const narrow = document.querySelector("[data-narrow]");
if (narrow) {
  narrow.hidden = false;
  narrow.addEventListener("input", () => {
    const words = narrow.querySelector("input").value.trim().toLowerCase();
    for (const group of document.querySelectorAll(".settings > details")) {
      const found = [...group.querySelectorAll(".setting")].filter((setting) => {
        setting.hidden = !setting.textContent.toLowerCase().includes(words);
        return !setting.hidden;
      });
      group.hidden = !found.length;
      if (words) group.open = true;
    }
  });
}
document.querySelector("[data-keys]")?.addEventListener("click", () => document.getElementById("keys").showModal());
