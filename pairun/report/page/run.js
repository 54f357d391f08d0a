// Draws the page on a run from the data in it.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const page = document.getElementById("page");

  // --- small helpers ---

  const place = (element, begin, seconds, row) => {
    element.style.setProperty("--b", begin);
    if (seconds !== undefined) element.style.setProperty("--s", seconds);
    if (row) element.style.setProperty("--row", row);
    return element;
  };

  const duration = (seconds) => {
    if (seconds < 1) return `${Number((seconds * 1000).toPrecision(3))} ms`;
    if (seconds < 60) return `${Number(seconds.toPrecision(3))} s`;
    const whole = Math.round(seconds);
    const parts = [[86400, "d"], [3600, "h"], [60, "m"], [1, "s"]];
    const shown = [];
    let left = whole;
    for (const [size, unit] of parts) {
      const count = Math.floor(left / size);
      left %= size;
      if (count) shown.push([count, unit]);
    }
    return shown.map((part) => part.join(shown.length > 1 ? "" : " ")).join(" ");
  };

  const about = (part) => (part.measured ? "" : "about ") + duration(part.seconds);
  const outcomeClass = (outcome) => outcome.replace(" ", "-");

  // --- the time axis ---

  const whole = Math.max(data.seconds, 0.001);
  const view = { from: 0, span: whole * 1.02 };
  const timeline = make("div", { classes: "timeline" });
  const axis = make("div", { classes: "track" });

  const show = (from, span) => {
    view.span = Math.min(whole * 1.02, Math.max(whole / 1e5, span));
    view.from = Math.max(0, Math.min(whole * 1.02 - view.span, from));
    timeline.style.setProperty("--from", view.from);
    timeline.style.setProperty("--span", view.span);
    const rough = view.span / Math.max(3, axis.clientWidth / 110);
    const power = 10 ** Math.floor(Math.log10(rough));
    const sizes = rough < 30 ? [1, 2, 5, 10].map((n) => n * power) : [30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 14400, 43200, 86400, 864000];
    const step = sizes.find((size) => size >= rough) || rough;
    axis.replaceChildren();
    for (let at = Math.ceil(view.from / step) * step; at < view.from + view.span; at += step) {
      axis.append(place(make("span", { classes: "tick", text: duration(Math.round(at * 1e6) / 1e6) }), at));
    }
  };
  const zoom = (factor, at = view.from + view.span / 2) => {
    const span = Math.min(whole * 1.02, view.span * factor);
    show(at - ((at - view.from) * span) / view.span, span);
  };
  const pan = (share) => show(view.from + view.span * share, view.span);

  // --- tip and details ---

  const tip = make("div", { id: "tip", hidden: "" });
  const tipLines = new WeakMap(); // bar → lines of its tip
  const showTip = (bar) => {
    const box = bar.getBoundingClientRect();
    tip.replaceChildren(...tipLines.get(bar).map((text) => make("div", { text })));
    tip.hidden = false;
    const left = Math.max(4, Math.min(box.left, innerWidth - tip.offsetWidth - 8));
    const above = box.top - tip.offsetHeight - 6;
    tip.style.transform = `translate(${left}px, ${above > 4 ? above : box.bottom + 6}px)`;
  };

  const details = make("section", { id: "details", hidden: "", "aria-label": "Details", tabindex: "-1" });
  let opened = null;
  const close = () => {
    details.hidden = true;
    if (opened) {
      opened.setAttribute("aria-expanded", "false");
      opened.focus();
    }
    opened = null;
  };
  const open = (bar, title, content) => {
    if (opened) opened.setAttribute("aria-expanded", "false");
    opened = bar;
    bar.setAttribute("aria-expanded", "true");
    const button = make("button", { classes: "close", type: "button", text: "Close" });
    button.addEventListener("click", close);
    details.replaceChildren(button, make("h2", { text: title }), ...content);
    details.hidden = false;
    tip.hidden = true;
    details.focus();
  };
  addEventListener("keydown", (event) => event.key === "Escape" && (tip.hidden ? close() : (tip.hidden = true)));

  const facts = (pairs) => {
    const list = make("dl");
    for (const [name, value] of pairs) {
      if (value !== undefined && value !== null && value !== "") {
        list.append(make("div", {}, make("dt", { text: name }), make("dd", { text: String(value) })));
      }
    }
    return list;
  };
  const reasons = (part) => [
    part.message && make("p", { text: part.message }),
    part.hint && make("p", {}, make("b", { text: "What to do: " }), part.hint),
    part.trace && make("pre", { text: part.trace }),
  ];
  const settingsOf = (task) => {
    const settings = data.settings[task.settings];
    if (!settings) return [];
    const items = settings.set.map((each) => make("li", {}, make("code", { text: `${each.path} = ${each.value}` }),
      make("span", { classes: "quiet", text: ` ← ${each.by}${each.was === undefined ? "" : `, was ${each.was}`}` })));
    return [make("h3", { text: "Who set what" }), make("p", { classes: "quiet", text: `the task comes from ${settings.by}` }),
      items.length > 0 && make("ul", {}, ...items)];
  };
  const taskDetails = (task, phase) => [
    task.name && make("p", { text: task.name }),
    facts([
      ["outcome", task.outcome], ["phase", phase.title], ["took", about(task)], ["began at", duration(task.begin)],
      ["module", task.module], ["kind", task.kind], ["fault", task.fault],
      ["attempts", task.attempts && (task.of > 1 ? `${task.attempts.length} of ${task.of}` : task.attempts.length)],
      ["role", task.handler && "exit handler"],
    ]),
    ...reasons(task),
    ...settingsOf(task),
    ...(task.attempts || []).flatMap((attempt, index) => [
      make("h3", { text: `Attempt ${attempt.attempt}: ${attempt.outcome}, ${duration(attempt.seconds)}` }),
      ...(attempt.message === task.message ? [] : reasons(attempt)),
      attempt.output.length > 0 && make("pre", { text: attempt.output.join("\n"), tabindex: "0" }),
      task.waits[index] && make("p", { classes: "quiet", text: `then waited ${duration(task.waits[index].seconds)}${task.waits[index].because ? `: ${task.waits[index].because}` : ""}` }),
    ]),
  ];
  const whyDetails = (why) => [
    make("p", {}, make("b", { text: why.headline || "" })),
    facts([["class", why.class], ["fault", why.fault], ["retry", why.retry], ["confidence", why.confidence !== undefined && `${Math.round(why.confidence * 100)} %`]]),
    why.advice && make("p", {}, make("b", { text: "What to do: " }), why.advice),
    why.evidence.length > 0 && make("pre", { text: why.evidence.join("\n"), tabindex: "0" }),
  ];

  // --- lanes ---

  const bars = []; // every bar's lane, in order, for the arrow keys
  const makeBar = (lane, { title, classes, begin, seconds, row, lines, label, content }) => {
    const bar = make("button", { classes: `bar ${classes}`, type: "button", "aria-label": label, "aria-expanded": "false", tabindex: "-1" }, make("span", { text: title }));
    place(bar, begin, seconds, row);
    tipLines.set(bar, lines);
    bar.addEventListener("click", () => open(bar, `${lane.label}: ${title}`, content().filter((each) => each)));
    lane.bars.push(bar);
    return bar;
  };

  const stack = (tasks) => {
    // Tasks that ran at once lie below each other.
    const ends = [];
    return tasks.map((task) => {
      let row = ends.findIndex((end) => end <= task.begin + 0.0005);
      if (row < 0) row = ends.length;
      ends[row] = task.begin + task.seconds;
      return row;
    });
  };

  const rowOf = (lane, track, depth, state, classes = "") => {
    track.style.setProperty("--rows", depth);
    if (lane.bars.length) {
      lane.bars[0].tabIndex = 0;
      bars.push(lane.bars);
    }
    const name = make("div", { classes: `name${classes}` }, make("b", { text: lane.label }), make("span", { classes: "state", text: state }));
    return make("div", { classes: "row" }, name, track);
  };

  const drawLane = (past) => {
    const lane = { label: past.label, bars: [] };
    const track = make("div", { classes: "track", role: "group", "aria-label": `Tasks of ${past.label}` });
    let depth = 1;
    for (const phase of past.phases) {
      track.append(place(make("div", { classes: "phase" }), phase.begin, phase.seconds));
      const rows = stack(phase.tasks);
      depth = Math.max(depth, ...rows.map((row) => row + 1));
      const entries = phase.tasks.map((task, index) => ({ task, row: rows[index], begin: task.begin }));
      if (phase.command) entries.push({ command: phase.command, row: 0, begin: phase.command.begin });
      entries.sort((one, other) => one.begin - other.begin);
      for (const { task, command, row } of entries) {
        if (command) {
          const ended = command.exit_code === undefined ? "no end is recorded" : `exit code ${command.exit_code}`;
          track.append(makeBar(lane, {
            title: "command", classes: command.exit_code === 0 ? "command" : "command failed",
            begin: command.begin, seconds: command.seconds, row,
            lines: ["the user's command", ended, duration(command.seconds)],
            label: `the user's command, ${ended}, ${duration(command.seconds)}`,
            content: () => [facts([["ended with", ended], ["took", duration(command.seconds)], ["began at", duration(command.begin)], ["logs", past.logs.join(", ")]]), ...(phase.diagnosis ? whyDetails(phase.diagnosis) : [])],
          }));
          continue;
        }
        const tries = task.attempts && task.attempts.length > 1 ? `, ${task.attempts.length} attempts` : "";
        const kind = task.handler ? "exit handler " : "";
        const flags = `${task.path ? " path" : ""}${task.waits_for_others ? " waits" : ""}`;
        track.append(makeBar(lane, {
          title: task.id, classes: outcomeClass(task.outcome) + flags,
          begin: task.begin, seconds: task.seconds, row,
          lines: [`${kind}${task.id}: ${task.outcome}${tries}`, `${about(task)}, from ${duration(task.begin)}, ${phase.title}`, ...(task.message ? [task.message.slice(0, 200)] : [])],
          label: `${kind}${task.id}, ${task.outcome}${tries}, ${about(task)}, begins at ${duration(task.begin)}`,
          content: () => taskDetails(task, phase),
        }));
        if (tries) {
          for (const attempt of task.attempts) track.append(place(make("span", { classes: `part ${outcomeClass(attempt.outcome)}` }), attempt.begin, attempt.seconds, row));
          for (const wait of task.waits) track.append(place(make("span", { classes: "part wait" }), wait.begin, wait.seconds, row));
        }
      }
      for (const stop of phase.stops) {
        track.append(makeBar(lane, {
          title: stop.signal, classes: "stop", begin: stop.at_s,
          lines: [`${stop.signal} ${stop.origin || ""}`, `at ${duration(stop.at_s)}`],
          label: `signal ${stop.signal} ${stop.origin || ""}, at ${duration(stop.at_s)}`,
          content: () => [facts([["received", stop.signal], ["sent", stop.origin], ["at", duration(stop.at_s)]])],
        }));
      }
      if (phase.handlers_for && phase.handlers_for !== "success") track.append(place(make("div", { classes: "mark" }), phase.handlers_begin));
    }
    if (past.phases.some((phase) => phase.stops.length)) track.classList.add("stopped-by");
    const bad = past.outcome === "succeeded" ? "" : " bad";
    const first = data.count > 1 && past.label === data.first ? " first" : "";
    const words = past.phases.flatMap((phase) => [phase.message, ...phase.tasks.flatMap((task) => [task.id, task.message])]);
    const text = [past.label, past.state, ...past.notes, ...words].join("\n").toLowerCase();
    return { element: rowOf(lane, track, depth, past.state, bad + first), role: past.role, outcome: past.outcome, text };
  };

  const drawBands = (role) => {
    const of = data.bands.filter((band) => band.role === role);
    const count = Math.max(...of.map((band) => band.count));
    const lane = { label: role, bars: [] };
    const track = make("div", { classes: "track", role: "group", "aria-label": `Tasks of all instances of ${role}` });
    of.forEach((band, row) => {
      const [, , middle, , slowest] = band.seconds;
      const counts = Object.entries(band.outcomes).map(([outcome, n]) => `${n} ${outcome}`).join(", ");
      const worst = ["failed", "interrupted", "unfinished", "ignored", "changed", "ok", "skipped"].find((outcome) => band.outcomes[outcome]);
      const numbers = `median ${duration(middle)}, slowest ${duration(slowest)}`;
      track.append(makeBar(lane, {
        title: `${band.task}: ${counts}`, classes: worst, begin: band.begin[1], seconds: band.end[3] - band.begin[1], row,
        lines: [`${band.phase} ${band.task}: ${counts}`, numbers, "from the first tenth's begin to the last tenth's end"],
        label: `${band.phase} ${band.task}, ${counts}, ${numbers}`,
        content: () => [spread(band)],
      }));
    });
    return rowOf(lane, track, of.length, `${count} instances`);
  };

  const table = (label, head, rows) => make("div", { classes: "scroll", role: "region", "aria-label": label, tabindex: "0" }, make("table", {},
    make("thead", {}, make("tr", {}, ...head.map(([text, number]) => make("th", { text, scope: "col", classes: number ? "number" : "" })))),
    make("tbody", {}, ...rows.map((row) => make("tr", {}, ...row.map((cell, index) =>
      cell instanceof Node ? make("td", {}, cell) : make("td", { text: cell, classes: head[index][1] ? "number" : "" })))))));

  const spread = (band) => table(`How ${band.task} is spread`,
    [["", false], ["least", true], ["10 %", true], ["median", true], ["90 %", true], ["greatest", true]],
    [["began at", band.begin], ["took", band.seconds], ["ended at", band.end]].map(([name, values]) => [name, ...values.map(duration)]));

  // --- the page ---

  const heading = make("h2", { text: "Timeline", id: "timeline-title" });
  page.append(heading);

  const rows = [];
  const roles = [...new Set([...data.bands.map((band) => band.role), ...data.lanes.map((lane) => lane.role)])];
  timeline.append(make("div", { classes: "row axis" }, make("div", { classes: "name quiet", text: "time" }), axis));
  if (data.bands.length) {
    timeline.append(make("div", { classes: "role", text: `All ${data.count} instances, folded by role` }));
    for (const role of [...new Set(data.bands.map((band) => band.role))]) timeline.append(drawBands(role));
  }
  for (const role of roles) {
    const lanes = data.lanes.filter((lane) => lane.role === role);
    if (!lanes.length) continue;
    const many = data.bands.length ? `${lanes.length} that stand out` : `${lanes.length} instance${lanes.length > 1 ? "s" : ""}`;
    const title = make("div", { classes: "role", text: `${role}: ${many}` });
    timeline.append(title);
    for (const past of lanes) {
      const row = drawLane(past);
      rows.push({ ...row, title });
      timeline.append(row.element);
    }
  }

  // Filters
  const controls = make("form", { classes: "controls", role: "search", "aria-label": "Filter the timeline" });
  const search = make("input", { type: "search", placeholder: "Filter by text", "aria-label": "Filter by text" });
  const roleChoice = make("select", { "aria-label": "Role" }, make("option", { value: "", text: "every role" }), ...roles.map((role) => make("option", { value: role, text: role })));
  const outcomes = [...new Set(data.lanes.map((lane) => lane.outcome))];
  const outcomeChoice = make("select", { "aria-label": "Outcome" }, make("option", { value: "", text: "every outcome" }), ...outcomes.map((outcome) => make("option", { value: outcome, text: outcome })));
  const shown = make("span", { classes: "quiet", role: "status" });
  const filter = () => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    let count = 0;
    const titles = new Set();
    for (const row of rows) {
      const fits = (!roleChoice.value || row.role === roleChoice.value) && (!outcomeChoice.value || row.outcome === outcomeChoice.value) && words.every((word) => row.text.includes(word));
      row.element.hidden = !fits;
      if (fits) {
        count += 1;
        titles.add(row.title);
      }
    }
    for (const { title } of rows) title.hidden = !titles.has(title);
    shown.textContent = count === rows.length ? "" : `${count} of ${rows.length} shown`;
  };
  controls.addEventListener("submit", (event) => event.preventDefault());
  controls.addEventListener("input", filter);
  controls.append(
    ...(rows.length > 1 ? [search, roleChoice, outcomeChoice] : []),
    make("span", { classes: "zoom" }, makeButton("+", "Zoom in", () => zoom(0.5)), makeButton("−", "Zoom out", () => zoom(2)), makeButton("◀", "Earlier", () => pan(-0.3)), makeButton("▶", "Later", () => pan(0.3)), makeButton("All", "The whole time", () => show(0, whole * 1.02))),
    themeButton(), shown);
  const legend = make("ul", { classes: "legend" }, ...[["ok", "ok"], ["changed", "changed"], ["skipped", "skipped"], ["ignored", "ignored, interrupted"], ["failed", "failed"], ["command", "the user's command"], ["ok waits", "waits for other instances"], ["ok path", "thick edge: on the critical path"], ["stop", "stop signal"], ["handlers", "exit handlers begin"]].map(([classes, text]) => make("li", {}, make("span", { classes, "aria-hidden": "true" }), text)));
  page.append(controls, timeline, legend,
    make("p", { classes: "quiet", text: "Arrow keys move between tasks, Enter opens one, + and − zoom, Shift with an arrow key moves the view. Each lane uses its machine's clock." }));

  // Where the time went
  if (data.blame) {
    page.append(make("h2", { text: "Where the time went" }));
    if (data.count > 1) page.append(make("p", { text: `${data.blame.label} took longest: ${duration(data.blame.seconds)}.` }));
    for (const phase of data.blame.phases) {
      const cost = (id, seconds, share, note) => [id, duration(seconds), `${(share * 100).toFixed(1)} %`, make("meter", { min: 0, max: 1, value: share, "aria-label": `share of ${id}` }), note];
      page.append(make("h3", { text: `${phase.title}: ${duration(phase.seconds)}` }), table(`Costs of the ${phase.title}`,
        [["task", false], ["took", true], ["share", true], ["", false], ["", false]],
        [...phase.costs.map((each) => cost(each.id, each.seconds, each.share, [each.kind === "task" ? "" : each.kind, each.beside ? `beside ${each.beside}, which took longer` : "critical path", each.attempts > 1 ? `${each.attempts} attempts` : ""].filter(Boolean).join(", "))),
          ...Object.entries(phase.overhead).map(([what, seconds]) => cost(`pairun: ${what}`, seconds, phase.seconds ? seconds / phase.seconds : 0, ""))]));
    }
  }
  if (data.slowest.length) {
    page.append(make("h2", { text: "The slowest beside the median" }), table("The slowest beside the median",
      [["phase", false], ["task", false], ["slowest", false], ["took", true], ["median", true], ["of", true]],
      data.slowest.map((each) => [each.phase, each.task, each.label, duration(each.seconds), duration(each.median_s), String(each.instances)])));
  }
  if (data.why) page.append(make("h2", { text: "Why it failed" }), ...whyDetails(data.why).filter((each) => each));
  if (data.logs.length) {
    const marked = (log) => make("pre", { tabindex: "0" }, ...log.lines.flatMap((line, n) => [log.marked.includes(n) ? make("mark", { text: line }) : line, "\n"]));
    page.append(make("h2", { text: "Log" }), ...data.logs.map((log) => make("details", {}, make("summary", { text: log.title }), marked(log))));
  }
  const notes = [...data.problems, ...data.lanes.flatMap((lane) => lane.notes.map((note) => `${lane.label}: ${note}`))];
  if (notes.length) page.append(make("h2", { text: "Notes" }), make("ul", {}, ...notes.slice(0, 100).map((text) => make("li", { text }))));
  document.body.append(details, tip);

  // --- pointer and keyboard ---

  timeline.addEventListener("pointerover", (event) => {
    const bar = event.target.closest(".bar");
    if (bar) showTip(bar);
    else tip.hidden = true;
  });
  timeline.addEventListener("pointerleave", () => (tip.hidden = true));
  timeline.addEventListener("focusin", (event) => tipLines.has(event.target) && showTip(event.target));
  timeline.addEventListener("focusout", () => (tip.hidden = true));
  timeline.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    const box = axis.getBoundingClientRect();
    zoom(event.deltaY > 0 ? 1.25 : 0.8, view.from + ((event.clientX - box.left) / box.width) * view.span);
  }, { passive: false });
  let held = null;
  axis.addEventListener("pointerdown", (event) => {
    held = { x: event.clientX, from: view.from };
    axis.setPointerCapture(event.pointerId);
  });
  axis.addEventListener("pointermove", (event) => held && show(held.from - ((event.clientX - held.x) / axis.clientWidth) * view.span, view.span));
  axis.addEventListener("pointerup", () => (held = null));

  const focusBar = (bar) => {
    for (const lane of bars) for (const each of lane) if (each.tabIndex === 0 && each !== bar && lane.includes(bar)) each.tabIndex = -1;
    bar.tabIndex = 0;
    bar.focus();
  };
  timeline.addEventListener("keydown", (event) => {
    if (event.key === "+" || event.key === "=") return zoom(0.5);
    if (event.key === "-") return zoom(2);
    if (event.shiftKey && event.key === "ArrowLeft") return pan(-0.2);
    if (event.shiftKey && event.key === "ArrowRight") return pan(0.2);
    const lane = bars.findIndex((each) => each.includes(event.target));
    if (lane < 0) return undefined;
    const visible = (index) => !bars[index][0].closest(".row").hidden;
    const at = bars[lane].indexOf(event.target);
    let next = null;
    if (event.key === "ArrowLeft") next = bars[lane][at - 1];
    if (event.key === "ArrowRight") next = bars[lane][at + 1];
    if (event.key === "Home") next = bars[lane][0];
    if (event.key === "End") next = bars[lane].at(-1);
    for (const [key, step] of [["ArrowUp", -1], ["ArrowDown", 1]]) {
      if (event.key !== key) continue;
      let index = lane + step;
      while (bars[index] && !visible(index)) index += step;
      if (bars[index]) next = bars[index][Math.min(at, bars[index].length - 1)];
    }
    if (next) {
      event.preventDefault();
      focusBar(next);
    }
    return undefined;
  });

  show(0, whole * 1.02);
  addEventListener("resize", () => show(view.from, view.span));
})();
