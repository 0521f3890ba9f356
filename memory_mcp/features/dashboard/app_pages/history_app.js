// The history of a memory; an earlier revision is restored through the host.
"use strict";

function draw(answer) {
  const restore = (revision) => shown(async () => {
    await host.call("restore_version", { key: answer.memory.key, revision });
    draw(await host.call("history", { key: answer.memory.key }));
  });
  show(element("h1", {}, t("history")), element("article", { class: "text", dir: "auto" }, answer.memory.content), ...historyOf(answer, restore));
}

startApp(draw);
