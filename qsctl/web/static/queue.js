// The page of one queue: history, samples, consumers, dead letters, and the commands that change it.

import { get, post, stream } from "./api.js";
import { h, setText, svg } from "./dom.js";
import { explained, figure, shown, span } from "./format.js";
import { repeated } from "./repeat.js";
import { pathOf } from "./sparkline.js";

const PAGE = 20;
const WIDTH = 640;
const HEIGHT = 120;
const LINES = [["depth", "Depth", "line"], ["in_per_s", "In/s", "line"], ["out_per_s", "Out/s", "line second"]];

export function mount(element, state) {
  const { parameters, page } = state;
  const name = parameters.get("name") ?? "";
  const status = h("dl", { class: "figures" });
  const error = h("p", { class: "error", role: "alert", hidden: true });
  const charts = h("div", { class: "charts" });
  const commands = h("div", { class: "buttons", role: "group", "aria-label": "Commands" });
  const consumers = h("div", {});
  const dead = h("section", {});
  const samples = samplesPart(name, state);
  const problems = new Map();
  let over = false;

  element.append(
    h("p", {}, h("a", { href: "#/live" }, "All queues")),
    h("h1", {}, shown(name)),
    error, status, charts, commands, samples.element,
    h("section", {}, h("h2", {}, "Consumers"), consumers),
    dead,
  );

  function problem(where, text) {
    if (text) problems.set(where, text);
    else problems.delete(where);
    const all = [...problems.values()].join(" ");
    setText(error, all);
    error.hidden = all === "";
  }

  const drawings = new Map();
  const end = stream("/api/queue", { name }, (found) => {
    const missing = found.rows.length === 0 && found.seen_at_s ? "There is no queue of this name now." : "";
    problem("queue", found.error || missing);
    showFigures(status, found);
    found.rows.forEach((row, at) => showCharts(row, found.histories[at], found.interval_s));
  }, (failed) => problem("queue", explained(failed)));

  function showCharts(row, history, interval) {
    for (const [parts, title] of [[[LINES[0]], "Depth"], [[LINES[1], LINES[2]], "In/s and Out/s"]]) {
      const key = `${row.service ?? ""} ${title}`;
      if (!drawings.has(key)) {
        drawings.set(key, chart(title, row.service ?? "", parts));
        charts.append(drawings.get(key).element);
      }
      drawings.get(key).draw(history, interval);
    }
  }

  async function lookAtConsumers() {
    try {
      const found = await get("/api/queue/consumers", { name });
      if (over) return;
      consumers.replaceChildren(h("p", {}, found.summary), found.note ? h("p", { class: "faint" }, found.note) : "");
      if (found.rows.length) {
        consumers.append(table("Consumers", ["Consumer", ...found.figures.map((each) => each.heading)],
          found.rows.map((row) => [row.name, ...found.figures.map((each) => row[each.field])]), found.figures.map((each) => !each.is_text)));
      }
      problem("consumers", "");
    } catch (failed) {
      problem("consumers", explained(failed));
    }
  }

  async function lookAtDead() {
    let found;
    try {
      found = await get("/api/queue/dead", { name });
    } catch (failed) {
      problem("dead", explained(failed));
      return;
    }
    if (over) return;
    problem("dead", "");
    showCommands(commands, name, found.is_dead_letter, state, page.allow_changes, refresh);
    dead.replaceChildren(h("h2", {}, "Dead letters"));
    if (found.is_dead_letter) {
      dead.append(found.rows.length === 0
        ? h("p", { class: "faint" }, "None.")
        : table("Dead letters by origin and reason", ["Queue that they come from", "Reason", "Samples"],
          found.rows.map((row) => [row.from || "(moved here)", row.reason || "(none)", row.count]), [false, true]));
      if (!found.is_whole) dead.append(h("p", { class: "faint" }, "Of the first 2,000 samples."));
    } else if (found.beside.length) {
      dead.append(h("p", {}, "They go to ", found.beside.map((other) => h("a", { href: `#/queue?${new URLSearchParams({ name: other })}` }, shown(other)))));
    } else {
      dead.append(h("p", { class: "faint" }, "The subscriber has no dead-letter queue: what cannot be delivered is discarded."));
    }
  }

  function refresh() {
    lookAtConsumers();
    lookAtDead();
    samples.read();
  }

  state.key("r", "read samples, consumers and dead letters again", refresh);
  state.key("/", "write a selector", () => samples.focus());
  state.key("b", "back to all queues", () => state.go("live"));
  lookAtDead();
  samples.read();
  const endLooking = repeated(lookAtConsumers, 5000);
  return () => {
    over = true;
    endLooking();
    samples.close();
    end();
  };
}

function showFigures(element, found) {
  const wanted = found.rows.flatMap((row) => found.figures.map((each) => [`${found.rows.length > 1 ? `${row.service}: ` : ""}${each.heading}`, row[each.field]]));
  wanted.forEach(([heading, value], at) => {
    if (element.children.length <= at) element.append(h("div", {}, h("dt", {}), h("dd", {})));
    setText(element.children[at].children[0], heading);
    setText(element.children[at].children[1], typeof value === "string" ? shown(value) : figure(value));
  });
  while (element.children.length > wanted.length) element.lastChild.remove();
}

// Return a chart of one or two figures over time; its text states what a screen reader reads.
function chart(title, service, parts) {
  const paths = parts.map(([, , style]) => svg("path", { class: style, fill: "none" }));
  const label = svg("title", {});
  const most = h("span", { class: "faint" });
  const drawing = svg("svg", { class: "chart", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", preserveAspectRatio: "none" }, label, ...paths);
  const caption = h("figcaption", {}, `${title}${service ? ` at ${shown(service)}` : ""} `, most);
  return {
    element: h("figure", {}, caption, drawing),
    draw(history, interval) {
      const known = parts.flatMap(([field]) => history[field].filter((point) => point !== null));
      const top = Math.max(...known, 0);
      parts.forEach(([field], at) => paths[at].setAttribute("d", pathOf(history[field], 0, top || 1, WIDTH, HEIGHT, 3)));
      const length = Math.max(...parts.map(([field]) => history[field].length));
      const now = parts.map(([field, heading]) => `${heading} ${figure(history[field].at(-1))}`).join(", ");
      setText(label, `${title}, the last ${span(length * interval)}: now ${now}; the most is ${figure(top)}`);
      setText(most, `the last ${span(length * interval)}, at most ${figure(top)}${parts.length > 1 ? "; Out/s is dashed" : ""}`);
    },
  };
}

function table(label, headings, rows, areNumbers) {
  const kind = (at) => (at > 0 && areNumbers[at - 1] ? "number" : "");
  return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": label },
    h("table", {},
      h("thead", {}, h("tr", {}, headings.map((heading, at) => h("th", { scope: "col", class: kind(at) }, heading)))),
      h("tbody", {}, rows.map((row) => h("tr", {}, row.map((value, at) =>
        at === 0 ? h("th", { scope: "row" }, shown(value)) : h("td", { class: kind(at) }, typeof value === "string" ? shown(value) : figure(value)))))),
    ));
}

function samplesPart(name, state) {
  const { parameters } = state;
  const select = h("input", { id: "select", type: "text", value: parameters.get("select") ?? "", autocomplete: "off", spellcheck: "false", maxlength: "4096",
    "aria-describedby": "select-error", placeholder: "every sample" });
  const error = h("p", { id: "select-error", class: "error", role: "alert", hidden: true });
  const list = h("ol", { class: "samples" });
  const words_ = h("p", { class: "faint", role: "status" });
  const more = h("button", { type: "button", hidden: true, onclick: () => read(false) }, "More samples");
  let after = 0;
  let incarnation = "";
  let current = null;

  const form = h("form", { class: "bar", onsubmit: (event) => {
    event.preventDefault();
    state.set({ select: select.value });
    read();
  } }, h("label", { for: "select" }, "Selector "), select, h("button", { type: "submit" }, "Read"));

  async function read(fromStart = true) {
    current?.abort();
    current = new AbortController();
    const asked = { name, select: select.value, count: String(PAGE), after: String(fromStart ? 0 : after) };
    if (!fromStart && incarnation) asked.incarnation = incarnation;
    let found;
    try {
      found = await get("/api/queue/samples", asked, current.signal);
    } catch (failed) {
      if (failed.name === "AbortError") return;
      setText(error, explained(failed));
      error.hidden = false;
      select.setAttribute("aria-invalid", "true");
      return;
    }
    error.hidden = true;
    select.removeAttribute("aria-invalid");
    if (fromStart) list.replaceChildren();
    list.append(...found.rows.map(sample));
    after = Math.max(0, ...found.rows.map((row) => row.position));
    incarnation = found.incarnation || incarnation;
    more.hidden = !found.may_be_more;
    const count = list.children.length;
    setText(words_, count === 0 ? "No samples." : `${count} sample${count === 1 ? "" : "s"}, the first of the queue${select.value ? " that the selector matches" : ""}.`);
  }

  return {
    element: h("section", {}, h("h2", {}, "Samples"), form, error, words_, list, more),
    read,
    focus: () => select.focus(),
    close: () => current?.abort(),
  };
}

function sample(row) {
  const start = row.payload.slice(0, 400).replace(/\s+/g, " ").slice(0, 80);
  const cameFrom = row.dead_letter_from ? `, from ${row.dead_letter_from} (${row.dead_letter_reason})` : "";
  return h("li", { value: String(row.position) },
    h("details", {},
      h("summary", {}, `${row.position} `, h("span", { class: "faint" }, `${row.status.toLowerCase()}, ${figure(row.size_bytes)} octets${shown(cameFrom)} `), h("code", {}, shown(row.payload_kind === "hex" ? start.slice(7, 54) : start))),
      h("dl", { class: "figures" },
        [["Identity", row.identity], ["Enqueued", row.enqueued_at], ["Attempts", row.attempts], ["Redelivered", row.redelivered], ["Service", row.service]]
          .filter(([, value]) => value !== "")
          .map(([heading, value]) => h("div", {}, h("dt", {}, heading), h("dd", {}, typeof value === "string" ? shown(value) : figure(value))))),
      h("pre", { tabindex: "0", "aria-label": `Content as ${row.payload_kind || "nothing"}` }, row.payload_kind === "" ? "(on disk)" : visible(row.payload)),
      row.payload_is_cut ? h("p", { class: "faint" }, "The first part: the whole content has `qsctl peek`.") : "",
    ));
}

// Return a content with its line ends, and every other control character visible.
function visible(text) {
  return text.split("\n").map((line) => line.split("\t").map(shown).join("\t")).join("\n");
}

function showCommands(element, name, isDeadLetter, state, isAllowed, done) {
  const offered = [
    isDeadLetter ? ["requeue", "Put back…"] : null,
    ["move", "Move…"],
    ["flush", "Flush…"],
  ].filter((each) => each !== null);
  const reason = "Start qsctl web with --allow-changes to run commands from the page.";
  element.replaceChildren(
    ...offered.map(([action, title]) => h("button", {
      type: "button", class: action === "flush" ? "danger" : "", disabled: !isAllowed, "aria-describedby": isAllowed ? null : "why-not",
      "data-action": action, onclick: () => openDialog(name, action, title.replace("…", ""), state, done),
    }, title)),
    isAllowed ? "" : h("span", { class: "faint", id: "why-not" }, reason),
  );
}

// Open the dialog of a command: its fields, then the line and what it would hit, then its run.
function openDialog(name, action, title, state, done) {
  const select = h("input", { id: "d-select", type: "text", value: state.parameters.get("select") ?? "", autocomplete: "off", spellcheck: "false", placeholder: "every sample" });
  const to = h("input", { id: "d-to", type: "text", autocomplete: "off", spellcheck: "false", required: true });
  const from = h("input", { id: "d-from", type: "text", autocomplete: "off", spellcheck: "false", placeholder: "every queue" });
  const reason = h("select", { id: "d-reason" }, h("option", { value: "" }, "both"), h("option", { value: "MAX_RETRIES" }, "MAX_RETRIES"), h("option", { value: "LIFESPAN" }, "LIFESPAN"));
  const limit = h("input", { id: "d-limit", type: "number", min: "0", value: "0" });
  const shows = h("div", { role: "status" });
  const check = h("button", { type: "submit" }, "Show what it would do");
  const run = h("button", { type: "button", class: "danger", disabled: true, onclick: runIt }, title);
  const close = h("button", { type: "button", onclick: () => dialog.close() }, "Cancel");
  const row = (label, control) => h("p", {}, h("label", { for: control.id }, label), control);
  let checked = null;

  const form = h("form", { class: "fields", onsubmit: checkIt, oninput: forget },
    action === "move" ? row("Queue to move to", to) : "",
    action === "requeue" ? [row("Only those from the queue", from), row("Only those for the reason", reason)] : "",
    row("Selector", select),
    action === "flush" ? "" : row("At most (0: all)", limit),
    shows,
    h("p", { class: "buttons" }, check, run, close));
  const dialog = h("dialog", { "aria-labelledby": "d-title" }, h("h2", { id: "d-title" }, `${title}: ${shown(name)}`), form);
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
  if (action !== "move") checkIt();

  function fields() {
    const all = { action, queue: name, select: select.value };
    if (action === "move") all.to = to.value.trim();
    if (action === "requeue") Object.assign(all, { came_from: from.value.trim(), reason: reason.value });
    if (action !== "flush") all.limit = Math.trunc(Number(limit.value)) || 0;
    return all;
  }

  function forget() {
    checked = null;
    run.disabled = true;
  }

  async function checkIt(event = null) {
    event?.preventDefault();
    forget();
    const asked = fields();
    shows.replaceChildren(h("p", { class: "faint" }, "It is tried…"));
    try {
      const found = await post("/api/commands/trial", asked);
      if (JSON.stringify(asked) !== JSON.stringify(fields())) return;
      shows.replaceChildren(h("p", {}, "This runs:"), h("pre", { class: "command", tabindex: "0" }, shown(found.line)), h("p", {}, "What it would do now:"), h("pre", { tabindex: "0" }, visible(found.printed || "Nothing.")));
      if (found.status === 0 || found.status === 3) {
        checked = { ...asked, line: found.line };
        run.disabled = false;
      }
    } catch (failed) {
      shows.replaceChildren(h("p", { class: "error" }, explained(failed)));
    }
  }

  async function runIt() {
    if (checked === null) return;
    const wanted = checked;
    forget();
    check.disabled = true;
    close.textContent = "Close";
    shows.replaceChildren(h("p", { class: "faint" }, "It runs…"));
    try {
      const found = await post("/api/commands/run", wanted);
      shows.replaceChildren(h("pre", { class: "command", tabindex: "0" }, shown(found.line)), h("p", { class: found.status === 0 ? "done" : "error" }, `Exit status ${found.status}.`), h("pre", { tabindex: "0" }, visible(found.printed)));
      state.announce(`${title}: exit status ${found.status}`);
    } catch (failed) {
      shows.replaceChildren(h("p", { class: "error" }, explained(failed)));
    }
    close.focus();
    done();
  }
}
