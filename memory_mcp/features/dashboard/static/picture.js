// The picture of a page, drawn from the tables beside it. A click on an entity goes on from there; the links of the table do so without a script.
"use strict";

function graphOf(tables) {
  const rows = (name) => [...tables.querySelectorAll(`[data-${name}]`)];
  return {
    nodes: rows("node").map(({ dataset, cells }) => ({
      id: dataset.node, label: cells[0].textContent, color: dataset.color, value: Number(dataset.value), x: Number(dataset.x), y: Number(dataset.y),
    })),
    edges: rows("from").map(({ dataset, cells }) => ({
      from: dataset.from, to: dataset.to, label: cells[1].textContent, value: Number(dataset.value), arrows: dataset.arrows,
    })),
    opened: rows("opened").map(({ dataset }) => dataset.node),
    path: rows("path").map(({ dataset }) => `${dataset.from} ${dataset.to}`),
  };
}

const frame = document.querySelector("[data-graph]");
if (frame) {
  frame.hidden = false;
  const tables = () => document.querySelector("[data-graph-tables]");
  const picture = graphPicture(frame.querySelector(".graph"), (id) => {
    const row = tables().querySelector(`[data-node="${CSS.escape(id)}"]`);
    goTo((row.querySelector("[data-open]") || row.querySelector("a")).href);
  });
  pictureButtons(frame, picture);
  picture.show(graphOf(tables()));

  // Another picture on the same page: all but the drawing itself is replaced, so that entities move to where they are now.
  const replaced = async (address) => {
    const response = await fetch(address);
    const page = new DOMParser().parseFromString(await response.text(), "text/html");
    const next = page.querySelector("[data-graph]");
    if (!response.ok || !next) {
      location.assign(address);
      return;
    }
    next.replaceWith(frame);
    document.querySelector("main").replaceChildren(...page.querySelector("main").childNodes);
    picture.show(graphOf(tables()));
  };
  const goTo = async (address) => {
    if (new URL(address).pathname !== location.pathname) {
      location.assign(address);
      return;
    }
    await replaced(address);
    history.pushState(null, "", address);
  };
  addEventListener("popstate", () => replaced(location.href));
}
