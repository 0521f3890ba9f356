// The graph as a picture that can be moved, zoomed and followed outwards: of the dashboard and of the MCP App. It is beside a table that says the same.
"use strict";

const SMALLEST = 14;
const LARGEST = 44;
const THICKEST = 4;
// Of more relations only those at the pointer say what they are, and of more entities the less mentioned have no name until they are larger.
const LABELED = 40;
const NAMED = 60;
// More entities are drawn smaller.
const ROOMY = 40;
const PADDING = 64;
// A longer name runs out of the picture; the table beside it has it whole.
const LONGEST = 16;
const CLOSER = 1.3;

// A picture in a container. `show` draws what graph_snapshot answers with `positions`; `opened` are the ids to mark, `path` the relations to mark as
// "source target". A click on an entity calls `onOpen` with its id.
function graphPicture(container, onOpen) {
  allowNoStyleElement();
  keepWheelForPage(container);
  const cy = cytoscape({ container, minZoom: 0.1, maxZoom: 4, boxSelectionEnabled: false, autoungrabify: true, style: graphStyle(container) });
  // cytoscape.js remembers where its container is, and does not learn that something above it became longer.
  for (const event of ["pointerenter", "pointerdown"]) {
    container.addEventListener(event, () => cy.resize(), { capture: true });
  }
  cy.on("tap", "node", (event) => onOpen(event.target.id()));
  // To measure the names takes longer than all the rest: those of the less mentioned come with a closer look.
  cy.on("zoom", () => cy.nodes(".minor").toggleClass("unnamed", cy.zoom() < CLOSER));
  cy.on("mouseover", "node", (event) => {
    event.target.removeClass("unnamed");
    event.target.connectedEdges().addClass("named");
    container.style.cursor = "pointer";
  });
  cy.on("mouseout", "node", () => {
    cy.edges().not(".few").removeClass("named");
    container.style.cursor = "";
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => cy.style(graphStyle(container)));
  return { show: (graph) => showGraph(cy, graph), zoom: (factor) => zoomPicture(cy, factor), fit: () => fitPicture(cy) };
}

function showGraph(cy, { nodes, edges, opened = [], path = [] }) {
  const before = new Map(cy.nodes().map((node) => [node.id(), { ...node.position() }]));
  const values = nodes.map((node) => node.value || 0).sort((one, other) => other - one);
  const scale = Math.min(1, Math.sqrt(ROOMY / nodes.length));
  const size = ({ value }) => scale * (SMALLEST + (LARGEST - SMALLEST) * Math.sqrt((value || 0) / Math.max(1, values[0])));
  const places = placesOn(cy, nodes);
  const few = edges.length <= LABELED ? "few named" : "";
  const shown = {
    nodes: nodes.map((node, index) => ({
      data: { id: node.id, label: shortened(node.label), color: legible(node.color, cy.container()), size: size(node) },
      position: places.get(node.id),
      classes: [opened.includes(node.id) ? "opened" : "", index >= NAMED ? "minor unnamed" : ""].join(" "),
    })),
    edges: edges.filter((edge) => edge.from !== edge.to).map((edge) => ({
      data: { id: `${edge.from} ${edge.label} ${edge.to}`, source: edge.from, target: edge.to, label: edge.label, width: Math.max(1, scale * THICKEST * edge.value) },
      classes: [few, edge.arrows ? "directed" : "", path.includes(`${edge.from} ${edge.to}`) ? "path" : ""].join(" "),
    })),
  };
  cy.json({ elements: shown });
  const moves = before.size > 0 && !matchMedia("(prefers-reduced-motion: reduce)").matches;
  if (moves) {
    cy.nodes().positions((node) => before.get(node.id()) || places.get(node.id()));
  }
  cy.one("render", () => {
    cy.container().dataset.drawn = nodes.length;
    performance.mark("graph drawn");
  });
  if (moves) {
    cy.layout({ name: "preset", positions: (node) => places.get(node.id()), animate: true, animationDuration: 400, fit: false }).run();
  }
  fitPicture(cy);
}

// A dark color on a dark page is lifted, so that it is seen.
function legible(color, container) {
  const light = (channels) => channels[0] * 0.299 + channels[1] * 0.587 + channels[2] * 0.114;
  const channels = (color.match(/^#(..)(..)(..)$/) || []).slice(1).map((part) => parseInt(part, 16));
  const ground = (getComputedStyle(container).backgroundColor.match(/[\d.]+/g) || [255, 255, 255]).map(Number);
  if (channels.length < 3 || light(ground) > 100 || light(channels) > 110) return color;
  return `#${channels.map((channel) => Math.round(channel + (255 - channel) * 0.45).toString(16).padStart(2, "0")).join("")}`;
}

const shortened = (name) => ([...name].length > LONGEST ? `${[...name].slice(0, LONGEST - 1).join("")}…` : name);

// Where each entity is on the screen, by its id: so that names have their size, whatever the frame of the positions is.
function placesOn(cy, nodes) {
  const spread = (axis, size) => {
    const values = nodes.map((node) => node[axis]);
    const [least, most] = [Math.min(...values), Math.max(...values)];
    return (value) => PADDING + (size - 2 * PADDING) * (most > least ? (value - least) / (most - least) : 0.5);
  };
  const [across, down] = [spread("x", cy.width()), spread("y", cy.height())];
  return new Map(nodes.map((node) => [node.id, { x: across(node.x), y: down(node.y) }]));
}

// As cy.fit does, but without measuring all names, which takes longer than drawing them.
function fitPicture(cy) {
  cy.viewport({ zoom: 1, pan: { x: 0, y: 0 } });
}

function zoomPicture(cy, factor) {
  cy.zoom({ level: cy.zoom() * factor, renderedPosition: { x: cy.width() / 2, y: cy.height() / 2 } });
}

// The colors of the page, light or dark.
function graphStyle(container) {
  const { color, backgroundColor, borderTopColor, outlineColor, fontFamily } = getComputedStyle(container);
  return [
    { selector: "node", style: {
      "background-color": "data(color)", width: "data(size)", height: "data(size)", label: "data(label)", color, "font-family": fontFamily, "font-size": 13,
      "border-width": 1, "border-color": color, "border-opacity": 0.5,
      "text-valign": "top", "text-margin-y": -3, "text-outline-color": backgroundColor, "text-outline-width": 3, "z-index": 2,
    } },
    { selector: "node.unnamed", style: { label: "", "z-index": 1 } },
    { selector: "node.opened", style: { "border-width": 4, "border-color": outlineColor, "border-opacity": 1, "font-weight": "bold" } },
    { selector: "edge", style: { width: "data(width)", "line-color": borderTopColor, "curve-style": "haystack", "haystack-radius": 0 } },
    { selector: "edge.few", style: { "curve-style": "bezier" } },
    { selector: "edge.directed.few", style: { "target-arrow-shape": "triangle", "target-arrow-color": borderTopColor } },
    { selector: "edge.path", style: { "line-color": outlineColor, "target-arrow-color": outlineColor, "z-index": 1 } },
    { selector: "edge.named", style: {
      label: "data(label)", color, "font-family": fontFamily, "font-size": 11, "text-rotation": "autorotate", "text-outline-color": backgroundColor,
      "text-outline-width": 3, "min-zoomed-font-size": 9,
    } },
  ];
}

// cytoscape.js inserts a style element unless there is one of this name, and the content security policy allows none: dashboard.css has its rule.
function allowNoStyleElement() {
  const id = "__________cytoscape_stylesheet";
  if (!document.getElementById(id)) {
    document.head.append(Object.assign(document.createElement("meta"), { id }));
  }
}

// The wheel moves the page, as everywhere; with Ctrl it zooms, as a pinch on a touchpad does.
function keepWheelForPage(container) {
  container.addEventListener("wheel", (event) => {
    if (!event.ctrlKey) {
      event.stopImmediatePropagation();
    }
  }, { capture: true });
}

// The buttons of a picture, by keyboard too.
function pictureButtons(frame, picture) {
  for (const button of frame.querySelectorAll("[data-zoom]")) {
    button.addEventListener("click", () => picture.zoom(Number(button.dataset.zoom)));
  }
  frame.querySelector("[data-fit]").addEventListener("click", picture.fit);
}
