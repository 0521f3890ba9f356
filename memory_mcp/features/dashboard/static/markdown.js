// Shows Markdown as elements: no HTML of the text, no pictures, and links only to the web. Everything is set as text.
"use strict";

const INLINE = /(`+)([^]*?[^`])\1(?!`)|(\*\*|__)(?=\S)([^]*?\S)\3|(\*)(?=\S)([^*]*?\S)\5|!?\[([^\]]*)\]\(([^()\s]*)(?:\s+"[^"]*")?\)|(https?:\/\/[^\s<>"'`）」』]+)/;

const make = (tag, parent) => parent.appendChild(document.createElement(tag));

const inline = (text, parent) => {
  let rest = text;
  for (let found = INLINE.exec(rest); found; found = INLINE.exec(rest)) {
    parent.append(rest.slice(0, found.index));
    if (found[1]) make("code", parent).textContent = found[2].trim();
    else if (found[3]) inline(found[4], make("strong", parent));
    else if (found[5]) inline(found[6], make("em", parent));
    else link(found[9] ?? found[7], found[9] ?? found[8], parent, found[0].startsWith("!"));
    rest = rest.slice(found.index + found[0].length);
  }
  parent.append(rest);
};

const link = (text, address, parent, isPicture) => {
  if (isPicture || !/^https?:\/\//i.test(address)) {
    parent.append(text);
    return;
  }
  const element = make("a", parent);
  Object.assign(element, { href: address, rel: "noopener noreferrer nofollow", target: "_blank", textContent: text });
};

// A block at a time: the lines of fences, lists, quotations, headings and paragraphs.
const BLOCKS = [
  [/^ {0,3}(```+|~~~+)/, (lines, parent) => {
    const fence = lines.shift().trim().match(/^(`+|~+)/)[0];
    const code = make("code", make("pre", parent));
    const inside = [];
    while (lines.length && !lines[0].trim().startsWith(fence)) inside.push(lines.shift());
    lines.shift();
    code.textContent = inside.join("\n");
  }],
  [/^ {0,3}#{1,6}\s/, (lines, parent) => {
    // No heading of the page: its outline is ours.
    inline(lines.shift().trim().replace(/^#+\s*|\s*#*$/g, ""), make("strong", make("p", parent)));
  }],
  [/^\s*(?:[-*+]|\d{1,9}[.)])\s+/, (lines, parent) => {
    const item = /^(\s*)([-*+]|\d{1,9}[.)])\s+(.*)/;
    const list = make(/^\s*\d/.test(lines[0]) ? "ol" : "ul", parent);
    while (lines.length && item.test(lines[0])) {
      const [, indent, , text] = lines.shift().match(item);
      const inside = [text];
      while (lines.length && lines[0].trim() && lines[0].search(/\S/) > indent.length) inside.push(lines.shift().slice(indent.length + 2));
      blocks(inside, make("li", list), true);
    }
  }],
  [/^ {0,3}>/, (lines, parent) => {
    const inside = [];
    while (lines.length && /^ {0,3}>/.test(lines[0])) inside.push(lines.shift().replace(/^ {0,3}> ?/, ""));
    blocks(inside, make("blockquote", parent));
  }],
  [/^ {0,3}\|.*\|\s*$/, (lines, parent) => {
    const cells = (line) => line.trim().replace(/^\||\|$/g, "").split(/(?<!\\)\|/);
    const table = make("table", parent);
    for (let tag = "th"; lines.length && /^ {0,3}\|/.test(lines[0]); tag = "td") {
      const row = make("tr", table);
      for (const cell of cells(lines.shift())) inline(cell.trim().replaceAll("\\|", "|"), make(tag, row));
      if (tag === "th" && /^ {0,3}\|[\s|:-]+$/.test(lines[0] ?? "")) lines.shift();
    }
  }],
];

const blocks = (lines, parent, isItem = false) => {
  while (lines.length) {
    if (!lines[0].trim()) { lines.shift(); continue; }
    const block = BLOCKS.find(([begins]) => begins.test(lines[0]));
    if (block) { block[1](lines, parent); continue; }
    const paragraph = [];
    while (lines.length && lines[0].trim() && !BLOCKS.some(([begins]) => begins.test(lines[0]))) paragraph.push(lines.shift());
    inline(paragraph.join("\n"), isItem ? parent : make("p", parent));
  }
};

const showMarkdown = (element, text) => {
  element.replaceChildren();
  blocks(text.split("\n"), element);
};

for (const element of document.querySelectorAll("[data-markdown]")) showMarkdown(element, element.textContent);
