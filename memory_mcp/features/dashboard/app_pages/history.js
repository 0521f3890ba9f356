// What a memory said before, with what changed from one revision to the next.
"use strict";

// The characters that stay at both ends, and what stands between them before and after.
function changed(before, after) {
  const [old, now] = [[...before], [...after]];
  let head = 0;
  while (head < old.length && head < now.length && old[head] === now[head]) {
    head += 1;
  }
  let tail = 0;
  while (tail < old.length - head && tail < now.length - head && old[old.length - 1 - tail] === now[now.length - 1 - tail]) {
    tail += 1;
  }
  const text = (characters, end) => characters.slice(head, end).join("");
  return { head: old.slice(0, head).join(""), gone: text(old, old.length - tail), came: text(now, now.length - tail), tail: old.slice(old.length - tail).join("") };
}

function historyOf(answer, onRestore) {
  const states = [answer.memory, ...answer.versions];
  const steps = answer.versions.map((version, index) => {
    const { head, gone, came, tail } = changed(version.content, states[index].content);
    const because = version.changed_because ? [element("p", {}, element("span", { class: "label" }, t("reason")), ` ${version.changed_because}`)] : [];
    const restore = onRestore ? [element("button", { type: "button", class: "quiet", onclick: () => onRestore(version.revision) }, t("restore_version", { revision: version.revision }))] : [];
    return element("section", { class: "step" },
      element("h2", {}, t("revision_step", { before: version.revision, after: states[index].revision || version.revision + 1 })),
      element("p", { class: "diff" }, head, ...(gone ? [element("del", {}, gone)] : []), ...(came ? [element("ins", {}, came)] : []), tail),
      ...because, ...restore);
  });
  const events = answer.events.map((event) => element("li", {}, `${minute(event.at)} ${term("event_", event.what)}${event.reason ? ` – ${event.reason}` : ""}`));
  const more = answer.more ? [element("p", { class: "hint" }, t("history_more", { count: answer.more }))] : [];
  return [...(steps.length ? steps : [element("p", {}, t("history_none"))]), ...more, element("h2", {}, t("events")), element("ul", {}, ...events)];
}
