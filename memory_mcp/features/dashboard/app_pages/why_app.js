// Why memories were recalled: the parts of each score; each memory leads to its history.
"use strict";

function part(name, { weight, value }) {
  const label = term("signal_", name);
  const added = weight * value;
  const meter = element("meter", { min: 0, max: 1, value: Math.min(1, Math.abs(added)), "aria-label": label });
  return element("li", added < 0 ? { class: "less" } : {}, element("span", { class: "part" }, label), meter, ` ${added.toFixed(3).replace("-", "−")}`);
}

function hit(memory) {
  const below = element("div");
  const history = () => shown(async () => below.replaceChildren(...historyOf(await host.call("history", { key: memory.key }))), below);
  const known = [minute(memory.occurred_at || memory.created_at), memory.ago, memory.source].filter(Boolean).join(" · ");
  return element("li", {},
    element("p", { class: "text" }, memory.content),
    element("p", { class: "hint" }, `${known} · ${t("score")} `, element("strong", {}, String(memory.score))),
    element("ul", { class: "why", "aria-label": t("why") }, ...Object.entries(memory.parts || {}).map(([name, value]) => part(name, value))),
    element("button", { type: "button", class: "quiet", onclick: history }, t("history")), below);
}

startApp((answer, asked) => {
  const without = (answer.degraded || []).map((reason) => term("degraded_", reason)).join("; ");
  show(
    element("h1", {}, asked.query || t("why")),
    element("p", { class: "hint" }, `${t("ran")} ${term("mode_", answer.mode)}`),
    ...(without ? [element("p", { class: "notice" }, `${t("degraded")} ${without}`)] : []),
    ...(answer.unmatched ? [element("p", { class: "notice" }, `${t("unmatched")} ${answer.unmatched.join("、")}`)] : []),
    ...(answer.hits.length ? [element("ol", { class: "hits" }, ...answer.hits.map(hit))] : [element("p", {}, t("none_found"))]),
  );
});
