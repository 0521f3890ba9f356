// Speaks with the host that shows this page: JSON-RPC by postMessage, as MCP Apps has it. Whatever is shown is set as text, never as markup.
"use strict";

const PROTOCOL = "2026-01-26";
const host = { language: "en" };

function t(name, values = {}) {
  return ABOUT.words[name][host.language === "ja" ? 1 : 0].replace(/\{(\w+)\}/g, (_, key) => values[key]);
}

// A word of the server, such as a part of a score; one without a text is shown as it is.
function term(family, value) {
  return family + value in ABOUT.words ? t(family + value) : value;
}

function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) {
      made.addEventListener(key.slice(2), value);
    } else {
      made.setAttribute(key, value);
    }
  }
  made.append(...children);
  return made;
}

function show(...children) {
  document.getElementById("app").replaceChildren(...children);
}

function problem(words) {
  return element("p", { role: "alert", class: "error" }, words);
}

function minute(moment) {
  return moment.slice(0, 16).replace("T", " ");
}

// Starts the page. `onResult` gets the structured answer of the tool and the arguments of its call.
function startApp(onResult) {
  const waiting = new Map();
  let numbered = 0;
  let input = {};
  const post = (message) => parent.postMessage({ jsonrpc: "2.0", ...message }, "*");
  const request = (method, params) => new Promise((resolve, reject) => {
    numbered += 1;
    waiting.set(numbered, { resolve, reject });
    post({ id: numbered, method, params });
  });
  const applyContext = ({ theme, locale }) => {
    document.documentElement.dataset.theme = theme || document.documentElement.dataset.theme;
    host.language = (locale || host.language).startsWith("ja") ? "ja" : "en";
    document.documentElement.lang = host.language;
  };
  const handlers = {
    "ui/notifications/tool-input": (params) => { input = params.arguments || {}; },
    "ui/notifications/tool-result": (params) => shown(() => onResult(answerOf(params), input)),
    "ui/notifications/tool-cancelled": (params) => show(problem(params.reason || t("cancelled"))),
    "ui/notifications/host-context-changed": applyContext,
    "ui/resource-teardown": () => ({}),
    ping: () => ({}),
  };
  addEventListener("message", ({ source, data }) => {
    if (source !== parent || !data || data.jsonrpc !== "2.0") {
      return;
    }
    if (!data.method) {
      const { resolve, reject } = waiting.get(data.id) || {};
      waiting.delete(data.id);
      if (resolve) {
        data.error ? reject(new Error(data.error.message)) : resolve(data.result);
      }
      return;
    }
    const handler = handlers[data.method];
    const result = handler && handler(data.params || {});
    if (data.id !== undefined) {
      post(handler ? { id: data.id, result: result || {} } : { id: data.id, error: { code: -32601, message: "unknown method" } });
    }
  });

  // The answer of a tool, called through the host for the same persona.
  host.call = async (name, args) => answerOf(await request("tools/call", { name, arguments: args }));

  request("ui/initialize", { protocolVersion: PROTOCOL, appInfo: { name: "memory-mcp", version: ABOUT.version }, appCapabilities: {} }).then((result) => {
    applyContext(result.hostContext || {});
    post({ method: "ui/notifications/initialized" });
    const size = () => post({ method: "ui/notifications/size-changed", params: { height: Math.ceil(document.body.getBoundingClientRect().height) } });
    new ResizeObserver(size).observe(document.body);
  });
}

function answerOf(result) {
  const text = (result.content || []).map((part) => part.text || "").join("\n");
  if (result.isError) {
    throw new Error(text);
  }
  return result.structuredContent || JSON.parse(text);
}

// Runs a step; what fails is said on the page.
async function shown(step, where = document.getElementById("app")) {
  try {
    await step();
  } catch (error) {
    where.append(problem(error.message));
  }
}
