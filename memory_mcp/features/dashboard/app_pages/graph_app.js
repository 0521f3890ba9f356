// The graph around whom one clicks, as a picture and as a list that the keyboard and screen readers go through.
"use strict";

const LIMIT = 100;
let picture = null;

const typeName = (type) => (host.language === "ja" && ABOUT.types[type]) || type;

function legend(nodes) {
  const types = new Map(nodes.map((node) => [node.group, node.color]));
  return element("ul", { class: "tags legend" }, ...[...types].map(([type, color]) => {
    const dot = element("span", { class: "dot", "aria-hidden": "true" });
    dot.style.backgroundColor = color;
    return element("li", {}, dot, ` ${typeName(type)}`);
  }));
}

function list(answer, goOn) {
  const names = new Map(answer.nodes.map((node) => [node.id, node.label]));
  const rows = answer.nodes.map((node) => element("tr", {},
    element("th", { scope: "row" }, node.label),
    element("td", {}, typeName(node.group)),
    element("td", {}, element("button", { type: "button", class: "quiet", "aria-label": t("go_on_from", { name: node.label }), onclick: () => goOn(node.id) }, "＋"))));
  const relations = answer.edges.map((edge) => element("li", {}, `${names.get(edge.from)} ${edge.arrows ? ">" : "—"} ${typeName(edge.label)} ${edge.arrows ? ">" : "—"} ${names.get(edge.to)}`));
  return element("details", {}, element("summary", {}, t("as_table")), element("table", {}, element("tbody", {}, ...rows)), element("ul", {}, ...relations));
}

function buttons() {
  const made = (label, attribute, value) => element("button", { type: "button", class: "quiet", [attribute]: value }, t(label));
  return element("p", { class: "row" }, made("zoom_in", "data-zoom", "1.4"), made("zoom_out", "data-zoom", "0.7"), made("fit", "data-fit", ""), element("span", { class: "hint" }, t("picture_hint")));
}

function draw(answer, goOn) {
  if (!picture) {
    const frame = element("div", { class: "frame" }, element("div", { class: "graph", role: "img", "aria-label": t("picture_label") }), buttons());
    show(element("h1", {}, t("picture")), element("div", { id: "above" }), frame, element("div", { id: "below" }));
    picture = graphPicture(frame.querySelector(".graph"), (id) => goOn(id));
    pictureButtons(frame, picture);
  }
  document.getElementById("above").replaceChildren(legend(answer.nodes));
  document.getElementById("below").replaceChildren(list(answer, goOn));
  picture.show({ nodes: answer.nodes, edges: answer.edges.map((edge) => ({ ...edge, label: typeName(edge.label) })), opened: answer.around });
}

async function follow(asked) {
  const answer = await host.call("graph_snapshot", { ...asked, format: "vis", positions: true });
  const goOn = (id) => shown(() => follow({ ...asked, around: [...(answer.around || []).filter((known) => known !== id), id], limit: LIMIT }), document.getElementById("below"));
  draw(answer, goOn);
}

startApp(async (answer, asked) => {
  if (answer.nodes && !answer.nodes.length) {
    show(element("p", {}, t("people_none")));
    return;
  }
  if (answer.nodes) {  // until the host has asked for the positions, and if it never does
    show(element("h1", {}, t("picture")), legend(answer.nodes), list(answer, (id) => follow({ ...asked, around: [id] })));
  }
  await follow(asked);
});
