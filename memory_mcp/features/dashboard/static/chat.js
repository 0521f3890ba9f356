// A turn of a conversation: sends the message, shows the events of the answer while they come, and ends the turn with the page.
"use strict";

const form = document.getElementById("say");
if (form) {
  const turns = document.getElementById("turns");
  const heading = document.querySelector("h1");
  const state = document.getElementById("state");
  const texts = document.getElementById("texts").dataset;
  const signals = JSON.parse(texts.signals);
  const cancel = form.querySelector("[data-cancel]");
  const allowed = new Set();
  let running = null;

  const clone = (name) => document.getElementById(name).content.firstElementChild.cloneNode(true);
  const room = (persona, path) => `${document.body.dataset.root}/p/${encodeURIComponent(persona)}/ui${path}`;
  const memory = (persona, key) => room(persona, `/memory?key=${encodeURIComponent(key)}`);
  const value = (name) => form.elements[name]?.value ?? "";
  const set = (name, text) => { form.elements[name].value = text; };

  // Edits are offered where a turn is stored and no other runs.
  const offer = () => turns.querySelectorAll(".turn").forEach((turn) => {
    turn.querySelector(".edit").hidden = running !== null || !turn.dataset.number;
  });

  // As the server draws it: an avatar of the same persona that is on the page has its color.
  const faceOf = (face, speaker) => {
    face.hidden = false;
    face.textContent = [...speaker.trim()][0]?.toUpperCase() ?? "?";
    const own = document.querySelector(".switch");
    const known = own?.querySelector("strong").textContent === speaker ? own.querySelector(".avatar").className : "avatar hue-11";
    face.className = `${known} round`;
  };

  const said = (turn, role, speaker, model) => {
    const element = clone("said");
    element.classList.add(role);
    element.querySelector(".label").textContent = model ? `${speaker} · ${model}` : speaker;
    if (role === "assistant") faceOf(element.querySelector(".avatar"), speaker);
    turn.querySelector(".edit").before(element);
    return element.querySelector(".words");
  };

  const add = (turn, element) => { turn.querySelector(".edit").before(element); return element; };

  const showStored = (turn, persona, stored) => {
    const element = add(turn, clone("stored"));
    const button = element.querySelector("button");
    toast(`${texts.stored} ${stored.text || stored.key}`, button && (() => button.click()));
    Object.assign(element.querySelector("a"), { href: memory(persona, stored.key), textContent: stored.text || stored.key });
    button?.addEventListener("click", async (event) => {
      const answer = await post(room(persona, "/memories/forget"), { key: stored.key });
      if (answer?.ok) event.target.replaceWith(texts.undone);
    });
  };

  // The memories stand before what the model sent and got, word for word.
  const showRecalled = (tool, persona, found) => {
    if (!found.length) return;
    const list = document.createElement("ul");
    const summary = tool.querySelector("summary");
    summary.firstChild.textContent = `${texts.recalled.replace("{count}", found.length)} `;
    summary.after(list);
    for (const one of found) {
      const element = clone("recalled");
      Object.assign(element.querySelector("a"), { href: memory(persona, one.key), textContent: one.text || one.key });
      element.querySelector(".hint").textContent = [one.when, one.score?.toFixed(3)].filter(Boolean).join(" · ");
      for (const [name, points] of Object.entries(one.why ?? {}).filter(([, points]) => Math.abs(points) >= 0.0005)) {
        const part = element.querySelector(".why").appendChild(clone("part"));
        const [label, bar, sum] = part.children;
        label.textContent = bar.ariaLabel = signals[name] ?? name;
        bar.value = Math.abs(points);
        sum.textContent = points.toFixed(3);
        part.classList.toggle("less", points < 0);
      }
      for (const judging of element.querySelectorAll("form")) {
        judging.action = room(persona, "/memory/judge");
        judging.elements.key.value = one.key;
      }
      list.append(element);
    }
  };

  // A long answer comes in thousands of pieces: they are shown once for each frame of the screen.
  const draw = (run) => {
    cancelAnimationFrame(run.due);
    run.due = 0;
    if (run.words) showMarkdown(run.words, run.text);
  };
  const finish = (run) => {
    draw(run);
    Object.assign(run, { words: null, text: "" });
  };

  const note = (run, text) => {
    finish(run);
    Object.assign(add(run.turn, document.createElement("p")), { className: "note", textContent: text });
  };

  // What becomes of each event. `run` holds the turn's element, its answers so far, and its tools by the ids of their calls.
  const handlers = {
    begun: (run, event) => Object.assign(run, { id: event.run, conversation: event.id, number: event.number }),
    text_piece: (run, event) => {
      run.words ??= said(run.turn, "assistant", event.persona, run.model);
      run.text += event.text;
      run.due ||= requestAnimationFrame(() => draw(run));
    },
    tool_call_started: (run, event) => {
      finish(run);
      const tool = add(run.turn, clone("tool"));
      tool.querySelector("code").textContent = event.call.name;
      tool.querySelector("pre").textContent = JSON.stringify(event.call.arguments, null, 2);
      run.tools[event.persona + event.call.id] = tool;
    },
    approval_needed: (run, event) => {
      const question = add(run.turn, clone("ask"));
      question.querySelector("code").textContent = event.call.name;
      question.querySelector("pre").textContent = JSON.stringify(event.call.arguments, null, 2);
      for (const button of question.querySelectorAll("button")) {
        button.addEventListener("click", () => {
          if (button.dataset.allow === "yes") allowed.add(event.call.name);
          post(form.dataset.answer, { run: run.id, call: event.call.id, allow: button.dataset.allow });
          question.remove();
        });
      }
      question.querySelector("button").focus();
    },
    tool_result: (run, event) => {
      const tool = run.tools[event.persona + event.call.id];
      if (!tool) return;
      tool.appendChild(document.createElement("pre")).textContent = event.text;
      showRecalled(tool, event.persona, event.recalled ?? []);
      if (event.stored) showStored(run.turn, event.persona, event.stored);
    },
    heard: (run, event) => showStored(run.turn, event.persona, event.stored),
    retrying: (_run, event) => { state.textContent = `${texts.retrying} ${event.why}`; },
    cut_off: (run, event) => note(run, texts[`cut_${event.why}`]),
    left_out: (run, event) => note(run, `${texts.left_out} ${event.server} (${event.why})`),
    usage: (run, event) => { run.used[event.persona] = event; },  // each says what its persona has used so far
    turn_ended: (run) => finish(run),
    failed: (run, event) => { run.failed = event.text; },
    saved: (run, event) => {
      run.saved = true;
      run.turn.dataset.number = event.number;
      set("id", event.id);
      document.title = document.title.replace(heading.textContent, () => event.title);
      heading.textContent = event.title;
      history.replaceState(null, "", `${form.dataset.here}?id=${encodeURIComponent(event.id)}`);
    },
  };

  // Server-sent events: each is a line of JSON after "data: ", and an empty line.
  const read = async (stream, run) => {
    const reader = stream.pipeThrough(new TextDecoderStream()).getReader();
    for (let rest = ""; ;) {
      const { done, value: piece } = await reader.read();
      if (done) return;
      const parts = (rest + piece).split("\n\n");
      rest = parts.pop();
      for (const part of parts) {
        if (!part.startsWith("data: ")) continue;
        const event = JSON.parse(part.slice(6));
        handlers[event.event]?.(run, event);
      }
    }
  };

  const refusal = async (answer) => {
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    return page.querySelector("[role=alert]")?.textContent ?? texts.broken;
  };

  const speak = async (text, replace) => {
    const body = new URLSearchParams(new FormData(form));
    body.set("text", text);
    body.set("replace", replace ?? "");
    for (const name of allowed) body.append("allowed", name);
    const run = { turn: clone("turn"), tools: {}, used: {}, text: "", words: null, model: value("model"), saved: false };
    run.turn.dataset.text = text;
    const old = replace ? [...turns.querySelectorAll(".turn")].filter((turn) => Number(turn.dataset.number) >= Number(replace)) : [];
    for (const turn of old) turn.hidden = true;
    turns.querySelector(".begin")?.remove();
    turns.append(run.turn);
    run.turn.scrollIntoView({ block: "end" });
    showMarkdown(said(run.turn, "user", texts.you), text);
    running = new AbortController();
    cancel.hidden = false;
    state.textContent = texts.running;
    state.classList.remove("error");
    offer();
    try {
      const answer = await fetch(form.action, { method: "POST", body, signal: running.signal });
      if (answer.headers.get("content-type")?.startsWith("text/event-stream")) await read(answer.body, run);
      else run.failed = await refusal(answer);
    } catch {
      run.failed ??= running.signal.aborted ? texts.cancelled : texts.broken;
    }
    running = null;
    cancel.hidden = true;
    end(run, old, text);
  };

  const usedIn = ({ used }) => {
    const all = (name) => Object.values(used).reduce((sum, of) => sum + (of[name] ?? 0), 0);
    if (!all("input_tokens")) return "";
    const said = texts.usage.replace("{input}", all("input_tokens").toLocaleString()).replace("{output}", all("output_tokens").toLocaleString());
    return all("cost") ? `${said} · $${all("cost").toFixed(4)}` : said;
  };

  const end = (run, old, text) => {
    finish(run);
    const isKept = run.saved || (form.elements.off_record.checked && !run.failed);
    for (const turn of old) isKept && run.saved ? turn.remove() : (turn.hidden = false);
    state.textContent = [run.failed ?? (run.saved ? texts.saved : texts.unsaved), usedIn(run)].filter(Boolean).join(" ");
    state.classList.toggle("error", Boolean(run.failed));
    if (!isKept) {
      run.turn.querySelectorAll("[role=alertdialog]").forEach((question) => question.remove());
      run.turn.classList.add("ended");
      if (!value("text")) set("text", text);
    }
    // Whoever is in the room stays in it.
    const group = form.querySelector("[data-group]");
    if (run.saved && group) {
      const members = [...group.querySelectorAll("[name=member]")];
      members.forEach((box) => { box.closest("label").hidden = true; });
      group.hidden = !members.some((box) => box.checked);
    }
    set("replace", "");
    offer();
  };

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const text = value("text").trim();
    if (running || !text) return;
    const replace = value("replace");
    set("text", "");
    speak(text, replace);
  });
  form.elements.text.addEventListener("keydown", (event) => {
    // On a phone, Enter begins a line; while a word is being composed, it ends that.
    const sends = event.ctrlKey || event.metaKey || !(event.shiftKey || matchMedia("(pointer: coarse)").matches);
    if (event.key !== "Enter" || event.isComposing || !sends) return;
    event.preventDefault();
    if (!running) form.requestSubmit();
  });
  cancel.addEventListener("click", () => running?.abort());
  // A judgement is noted in its place; without this script, the memory's page says so.
  turns.addEventListener("submit", async (event) => {
    event.preventDefault();
    const memory = event.target.closest("li");
    if (!memory) return event.target.submit();
    const answer = await fetch(event.target.action, { method: "POST", body: new URLSearchParams(new FormData(event.target)) }).catch(() => null);
    const note = memory.querySelector("[role=status]") ?? memory.appendChild(document.createElement("span"));
    note.setAttribute("role", "status");
    note.textContent = answer?.ok ? texts.judged : answer ? await refusal(answer) : texts.broken;
  });
  turns.addEventListener("click", (event) => {
    const turn = event.target.closest(".turn");
    if (running || !turn?.dataset.number) return;
    if (event.target.matches("[data-again]")) speak(turn.dataset.text, turn.dataset.number);
    if (event.target.matches("[data-edit]")) {
      set("text", turn.dataset.text);
      set("replace", turn.dataset.number);
      form.elements.text.focus();
    }
  });
  offer();
}
