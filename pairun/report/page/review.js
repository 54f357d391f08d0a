// The page on a review is whole without this; it filters, and opens what is folded.
(() => {
  const tasks = [...document.querySelectorAll(".task")];
  if (!tasks.length) return;
  const texts = new Map(tasks.map((task) => [task, task.textContent.toLowerCase()]));

  const search = make("input", { type: "search", placeholder: "Filter tasks by text", "aria-label": "Filter tasks by text" });
  const changing = make("input", { type: "checkbox" });
  const shown = make("span", { classes: "quiet", role: "status" });
  const filter = () => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    let count = 0;
    for (const task of tasks) {
      const may = ["writes", "runs", "unknown"].includes(task.dataset.kind);
      const fits = (!changing.checked || may) && words.every((word) => texts.get(task).includes(word));
      task.hidden = !fits;
      if (fits) count += 1;
    }
    shown.textContent = count === tasks.length ? "" : `${count} of ${tasks.length} tasks shown`;
  };
  const controls = make("form", { classes: "controls", role: "search", "aria-label": "Filter the tasks" },
    search, make("label", {}, changing, "only changes and possible changes"),
    makeButton("Open all", "Open every task", () => tasks.forEach((task) => (task.open = true))),
    makeButton("Close all", "Close every task", () => tasks.forEach((task) => (task.open = false))),
    themeButton(), shown);
  controls.addEventListener("submit", (event) => event.preventDefault());
  controls.addEventListener("input", filter);
  document.querySelector("header").after(controls);

  // A link to a task that is folded or filtered away opens it.
  const reveal = () => {
    const target = document.getElementById(location.hash.slice(1));
    if (target && target.matches(".task")) {
      target.hidden = false;
      target.open = true;
      target.scrollIntoView({ block: "center", inline: "center" });
      target.querySelector("summary").focus({ preventScroll: true });
    }
  };
  addEventListener("hashchange", reveal);

  // Paper shows everything.
  let closed = [];
  addEventListener("beforeprint", () => {
    closed = [...document.querySelectorAll("details:not([open])")];
    for (const each of closed) each.open = true;
  });
  addEventListener("afterprint", () => closed.forEach((each) => (each.open = false)));
})();
