// The view "What if": settings of a scenario as sliders, and what the simulator answers while they are moved.
//
// All of the state is in the address: source, the settings of A and of B, which side is edited, seed, repetitions, the
// queue of the chart. A slider moves over a list of texts that the server has made, so that nothing here knows a unit.
// A newer question aborts the one before it; an event of an older one is never painted.

import { ask, get, post } from "./api.js";
import { chart } from "./chart.js";
import { h, setText } from "./dom.js";
import { explained, figure, shown } from "./format.js";

const ASK_AFTER_MS = 40;
const ANNOUNCE_AFTER_MS = 1200;
const OF_BOTH = ["horizon", "warm-up"];
const TABLE_ROWS = 24;
const USUAL_REPETITIONS = 10;
const BUCKETS = 240;

export function mount(element, state) {
  const view = new WhatIf(element, state);
  view.start();
  return () => view.end();
}

function readSettings(text) {
  const found = new Map();
  for (const line of (text ?? "").split("\n")) {
    const equals = line.indexOf("=");
    if (equals > 0) found.set(line.slice(0, equals), line.slice(equals + 1));
  }
  return found;
}

function writeSettings(settings) {
  return [...settings].map(([path, text]) => `${path}=${text}`).join("\n");
}

function duration(ns) {
  if (ns === 0) return "0 s";
  const size = Math.abs(ns);
  for (const [scale, unit] of [[7.2e12, "h"], [1.2e11, "min"], [1e9, "s"], [1e6, "ms"], [1e3, "µs"]]) {
    const one = { h: 3.6e12, min: 6e10 }[unit] ?? scale;
    if (size >= scale) return `${Number((ns / one).toPrecision(3))} ${unit}`;
  }
  return `${Number(ns.toPrecision(3))} ns`;
}

function measureText(value, unit, isDifference = false) {
  if (value === null || value === undefined) return "–";
  const sign = isDifference && value > 0 ? "+" : "";
  if (unit === "ns") return sign + duration(value);
  if (unit === "ratio") return `${sign}${Number((100 * value).toPrecision(3))} %`;
  const text = figure(Number(value.toPrecision(4)));
  return sign + (unit === "messages/s" ? `${text}/s` : text);
}

class WhatIf {
  constructor(element, state) {
    this.element = element;
    this.state = state;
    this.sides = { a: readSettings(state.parameters.get("a")), b: readSettings(state.parameters.get("b")) };
    this.hasB = state.parameters.has("b");
    this.edited = this.hasB && state.parameters.get("side") === "b" ? "b" : "a";
    this.page = crypto.randomUUID();
    this.asked = 0;
    this.askedAt = -Infinity;
    this.asking = null;
    this.answer = null;
    this.varied = state.parameters.get("varied") ?? "";
    this.isEnded = false;
  }

  async start() {
    this.build();
    try {
      const { sources } = await get("/api/what-if/sources");
      if (this.isEnded) return;
      this.fillSources(sources);
      await this.openSource();
    } catch (error) {
      this.refuse(error);
    }
  }

  end() {
    this.isEnded = true;
    this.asking?.abort();
    clearTimeout(this.askTimer);
    clearTimeout(this.announceTimer);
    this.chart.remove();
  }

  // The parts of the view.

  build() {
    this.source = h("select", { id: "source", onchange: () => this.changeSource() });
    this.repetitions = this.numberField("repetitions", USUAL_REPETITIONS, 1, 100);
    this.seed = this.numberField("seed", "", 0, Number.MAX_SAFE_INTEGER);
    this.compare = h("button", { type: "button", id: "compare", onclick: () => this.toggleB() });
    this.which = h("div", { class: "bar", role: "group", "aria-label": "Side whose settings are shown" });
    this.description = h("p", { class: "faint", id: "description" });
    this.first = h("div", {});
    this.filter = h("input", { type: "search", id: "filter", placeholder: "part of a name", oninput: () => this.fillOthers() });
    this.others = h("div", {});
    this.all = h(
      "details",
      { ontoggle: () => this.fillOthers() },
      h("summary", {}, "All settings"),
      h("p", { class: "bar" }, h("label", { for: "filter" }, "Filter ", this.filter)),
      this.others,
    );
    this.busy = h("p", { class: "busy faint", id: "busy" });
    this.sentences = h("div", { class: "sentences", id: "sentences" });
    this.figures = h("div", { class: "scroll", id: "figures", tabindex: "0", role: "region", "aria-label": "Figures" });
    this.queue = h("select", { id: "queue", onchange: () => this.chooseQueue() });
    this.legend = h("p", { class: "bar", id: "legend" });
    this.picture = h("div", { id: "picture" });
    this.chart = chart(this.picture);
    this.table = h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Depth over time as a table" });
    this.asTable = h("details", { id: "as-table", ontoggle: () => this.fillTable() }, h("summary", {}, "Depth as a table"), this.table);
    this.writing = h("div", { class: "written", id: "written" });
    this.results = h(
      "section",
      { class: "results", "aria-label": "Results", id: "results" },
      this.busy,
      this.sentences,
      h("h2", {}, "Depth over time"),
      h("p", { class: "bar" }, h("label", { for: "queue" }, "Queue ", this.queue)),
      this.legend,
      this.picture,
      this.asTable,
    );
    const more = h(
      "section",
      { class: "more", "aria-label": "Figures, commands and files" },
      h("h2", {}, "Figures"),
      this.figures,
      h("h2", {}, "Write this as"),
      h("p", { class: "buttons" }, h("button", { type: "button", id: "write", onclick: () => this.write() }, "Commands and files")),
      this.writing,
    );
    this.element.append(
      h("h1", {}, "What if"),
      h(
        "div",
        { class: "bar top-bar" },
        h("label", { for: "source" }, "Scenario ", this.source),
        h("label", { for: "repetitions" }, "Repetitions ", this.repetitions),
        h("label", { for: "seed" }, "Seed ", this.seed),
        this.compare,
      ),
      this.description,
      h("div", { class: "what-if" }, h("section", { class: "settings", "aria-label": "Settings" }, this.which, this.first, this.all), this.results, more),
    );
    this.showSides();
  }

  numberField(name, usual, least, most) {
    const field = h("input", { type: "number", id: name, min: least, max: most, step: 1, onchange: () => {
      const value = field.value === "" ? usual : Math.min(most, Math.max(least, Math.trunc(Number(field.value)) || 0));
      field.value = value;
      this.state.set({ [name]: String(value) === String(usual) ? null : String(value) });
      this.askSoon();
    } });
    const given = this.state.parameters.get(name);
    field.value = given !== null && /^\d{1,15}$/.test(given) ? Math.min(most, Math.max(least, Number(given))) : usual;
    return field;
  }

  fillSources(sources) {
    const kinds = new Map();
    for (const each of sources) kinds.set(each.kind, [...(kinds.get(each.kind) ?? []), each.name]);
    const groups = [...kinds].map(([kind, names]) =>
      h("optgroup", { label: kind }, names.map((name) => h("option", { value: name }, shown(name)))),
    );
    this.source.replaceChildren(...groups);
    const wanted = this.state.parameters.get("source");
    if (wanted !== null && !sources.some((each) => each.name === wanted)) {
      this.refuse({ message: `There is no scenario ${shown(wanted)}.`, remedy: "Another one is shown; start qsctl web with its file." });
      this.sides = { a: new Map(), b: new Map() };
      this.state.set({ source: null, a: null, b: null });
    }
    this.source.value = sources.some((each) => each.name === wanted) ? wanted : sources[0].name;
  }

  async changeSource() {
    this.sides = { a: new Map(), b: new Map() };
    this.hasB = false;
    this.edited = "a";
    this.varied = "";
    this.queueName = undefined;
    this.answer = null;
    this.state.set({ source: this.source.value, a: null, b: null, side: null, queue: null, varied: null });
    this.sentences.replaceChildren();
    this.figures.replaceChildren();
    this.writing.replaceChildren();
    await this.openSource();
  }

  async openSource() {
    const isFresh = !this.state.parameters.has("a");
    await this.loadControls(isFresh);
    this.askNow();
  }

  // Fetch the controls of the edited side. Only the newest call is used.
  async loadControls(isFresh = false) {
    const call = (this.loading = Symbol("call"));
    const wanted = { source: this.source.value, settings: Object.fromEntries(this.sides[this.edited]) };
    let found;
    try {
      found = await post("/api/what-if/controls", wanted);
    } catch (error) {
      if (call === this.loading) this.refuse(error);
      throw error;
    }
    if (call !== this.loading || this.isEnded) return;
    if (!isFresh && writeSettings(new Map(Object.entries(wanted.settings))) !== writeSettings(this.sides[this.edited])) {
      return this.loadControls(); // a setting was moved meanwhile
    }
    if (isFresh) {
      this.sides.a = new Map(Object.entries(found.usual));
      for (const [path, text] of this.sides.a) {
        const control = found.controls.find((each) => each.path === path);
        if (control) control.text = text;
        if (control && !control.positions.includes(text)) await this.refetch(control, text);
      }
    }
    setText(this.description, shown(found.description));
    if (!this.seed.value) this.seed.value = found.seed;
    for (const { path } of found.problems) this.sides[this.edited].delete(path);
    this.controls = found.controls;
    const of = (controls) => {
      const places = new Map();
      for (const each of controls) places.set(each.place, [...(places.get(each.place) ?? []), each]);
      return [...places].map(([place, each]) => this.fieldset(place, each));
    };
    this.first.replaceChildren(
      ...found.problems.map((problem) => h("p", { class: "error" }, shown(explained(problem)))),
      ...of(this.controls.filter((each) => each.is_first)),
    );
    this.groups = of;
    this.fillOthers();
    this.showSides();
    this.keep();
  }

  async refetch(control, text) {
    Object.assign(control, await post("/api/what-if/check", { source: this.source.value, settings: {}, path: control.path, text }));
  }

  fillOthers() {
    if (!this.all.open || !this.controls) {
      this.others.replaceChildren();
      return;
    }
    const part = this.filter.value.trim().toLowerCase();
    const fitting = this.controls.filter((each) => !each.is_first && (!part || each.path.toLowerCase().includes(part)));
    this.others.replaceChildren(...this.groups(fitting));
    if (fitting.length === 0) this.others.append(h("p", { class: "faint" }, "No other setting has this in its name."));
  }

  fieldset(place, controls) {
    return h("fieldset", {}, h("legend", {}, shown(place || "the run")), controls.map((each) => this.control(each)));
  }

  // One setting: slider or choice, field with the scenario's spelling, and a button that sets the scenario's value.
  control(control) {
    const id = `set-${this.controls.indexOf(control)}`;
    const error = h("p", { class: "error", id: `${id}-error`, hidden: true });
    const reset = h("button", { type: "button", class: "reset", "aria-label": `Reset ${shown(control.path)} to ${shown(control.base)}` }, "↺");
    const row = h("div", { class: "setting" });
    const changed = () => {
      const is = control.text !== control.base;
      row.classList.toggle("changed", is);
      reset.disabled = !is;
    };
    const label = h("label", { for: id }, shown(control.name));
    let slider = null;
    let field = null;
    const show = () => {
      if (slider !== null) {
        slider.max = control.positions.length - 1;
        slider.value = Math.max(0, control.positions.indexOf(control.text));
        slider.setAttribute("aria-valuetext", shown(control.text));
      }
      field.value = control.text;
      field.removeAttribute("aria-invalid");
      error.hidden = true;
      changed();
    };
    const write = async (text) => {
      const call = (control.call = Symbol("call"));
      const side = this.edited;
      try {
        const settings = Object.fromEntries(this.sides[side]);
        const found = await post("/api/what-if/check", { source: this.source.value, settings, path: control.path, text });
        if (call !== control.call || this.isEnded) return;
        Object.assign(control, found);
        show();
        this.set(side, control.path, control.text, control.base);
      } catch (refusal) {
        if (call !== control.call) return;
        field.setAttribute("aria-invalid", "true");
        error.hidden = false;
        setText(error, shown(explained(refusal)));
        this.state.announce(error.textContent);
      }
    };
    if (control.kind === "choice") {
      field = h("select", { id, class: "wide", "data-path": control.path, onchange: () => write(field.value) }, control.positions.map((text) => h("option", { value: text }, text)));
      row.append(label, field, reset);
    } else {
      if (control.kind === "range") {
        slider = h("input", { type: "range", id, min: 0, step: 1, "data-path": control.path, "aria-describedby": `${id}-error`, oninput: () => {
          control.call = null;
          control.text = control.positions[Number(slider.value)];
          show();
          this.set(this.edited, control.path, control.text, control.base);
        } });
      }
      field = h("input", {
        type: "text", id: slider ? `${id}-text` : id, class: slider ? "" : "wide", "data-path": control.path, spellcheck: "false", autocomplete: "off",
        "aria-describedby": `${id}-error`, title: `Allowed: ${control.allowed}`, maxlength: 300,
        onchange: () => write(field.value),
      });
      if (slider) field.setAttribute("aria-label", `${shown(control.name)} of ${shown(control.place || "the run")} as text`);
      row.append(label, ...(slider ? [slider] : []), field, reset);
    }
    reset.addEventListener("click", () => write(control.base));
    row.append(error);
    show();
    return row;
  }

  // Settings, and the address.

  set(edited, path, text, base) {
    const sides = this.hasB && OF_BOTH.includes(path) ? ["a", "b"] : [edited];
    for (const side of sides) {
      if (text === base) this.sides[side].delete(path);
      else this.sides[side].set(path, text);
    }
    if (!OF_BOTH.includes(path)) this.varied = path;
    this.keep();
    this.writing.replaceChildren();
    this.askSoon();
  }

  keep() {
    const parameters = this.state.parameters;
    // An empty list of settings is a state too: without it the page would begin with its own horizon.
    parameters.set("a", writeSettings(this.sides.a));
    if (this.hasB) parameters.set("b", writeSettings(this.sides.b));
    else parameters.delete("b");
    this.state.set({ source: this.source.value, side: this.edited === "b" ? "b" : null, varied: this.varied || null });
  }

  toggleB() {
    this.hasB = !this.hasB;
    if (this.hasB) this.sides.b = new Map(this.sides.a);
    this.edited = this.hasB ? "b" : "a";
    this.afterSides();
  }

  choose(side) {
    this.edited = side;
    this.afterSides();
  }

  async afterSides() {
    this.showSides();
    this.keep();
    this.writing.replaceChildren();
    this.askSoon();
    await this.loadControls().catch(() => {});
  }

  showSides() {
    setText(this.compare, this.hasB ? "Leave B out" : "Compare with B");
    this.compare.setAttribute("aria-pressed", String(this.hasB));
    const had = document.activeElement?.dataset?.side;
    this.which.hidden = !this.hasB;
    this.which.replaceChildren(
      ...["a", "b"].map((side) =>
        h("button", { type: "button", "data-side": side, "aria-pressed": String(side === this.edited), onclick: () => this.choose(side) }, `Settings of ${side.toUpperCase()}`),
      ),
    );
    if (had) this.which.querySelector(`[data-side="${had}"]`)?.focus();
  }

  // Questions and answers.

  askSoon() {
    // The first move is asked at once, those that follow it at most every few milliseconds.
    this.results.dataset.asked = "soon";
    if (this.askTimer) return;
    const wait = this.askedAt + ASK_AFTER_MS - performance.now();
    if (wait <= 0) {
      this.askNow();
      return;
    }
    this.askTimer = setTimeout(() => {
      this.askTimer = null;
      this.askNow();
    }, wait);
  }

  async askNow() {
    if (this.isEnded) return;
    this.askedAt = performance.now();
    this.asking?.abort();
    const asking = (this.asking = new AbortController());
    const number = (this.asked += 1);
    this.results.dataset.asked = number;
    const sides = [this.sides.a, ...(this.hasB ? [this.sides.b] : [])].map((side) => Object.fromEntries(side));
    const question = {
      page: this.page, source: this.source.value, sides, seed: this.seed.value === "" ? null : Number(this.seed.value),
      repetitions: Number(this.repetitions.value) || USUAL_REPETITIONS, buckets: BUCKETS,
    };
    let isWhole = false;
    try {
      await ask("/api/what-if/answer", question, (event) => {
        if (number !== this.asked || this.isEnded) return;
        isWhole ||= event.kind === "done" || event.kind === "refused" || event.kind === "overtaken";
        this.onEvent(event, number);
      }, asking.signal);
      if (!isWhole && number === this.asked && !this.isEnded) throw { message: "qsctl web has ended.", remedy: "Start it again and open the address that it prints." };
    } catch (error) {
      if (error.name !== "AbortError" && number === this.asked && !this.isEnded) this.refuse(error);
    }
  }

  onEvent(event, number) {
    if (event.kind === "answer") {
      this.answer = event;
      this.paint(number);
      this.results.dataset.answered = number;
      this.results.dataset.repetitions = event.repetitions;
      setText(this.busy, event.repetitions < event.of ? `${event.repetitions} of ${event.of} repetitions: the intervals become narrower.` : this.summary());
      if (event.repetitions === event.of) this.announceSoon();
    } else if (event.kind === "compiling") {
      setText(this.busy, "Compiling the simulator for this computer: once after an installation, up to some minutes.");
      this.state.announce(this.busy.textContent);
    } else if (event.kind === "simulating") {
      setText(this.busy, `Simulated ${duration(event.simulated_ns)} of ${duration(event.horizon_ns)}.`);
    } else if (event.kind === "refused") {
      this.refuse(event);
    } else if (event.kind === "overtaken") {
      this.refuse({ message: "Too many pages ask at a time.", remedy: "Move a setting to ask again." });
    } else if (event.kind === "done") {
      this.results.dataset.done = number;
    }
  }

  summary() {
    const { repetitions, confidence, horizon_ns: horizon } = this.answer;
    const of = repetitions === 1 ? "One repetition: no interval." : `${repetitions} repetitions; ± is half the ${Math.round(100 * confidence)} % interval.`;
    return `Simulated ${duration(horizon)}. ${of}`;
  }

  refuse(error) {
    const words = shown(explained(error));
    setText(this.busy, "");
    this.busy.append(h("span", { class: "error", role: "alert" }, words));
    if (this.results.dataset.asked !== undefined) this.results.dataset.refused = this.asked;
    this.sentences.classList.add("waiting");
  }

  announceSoon() {
    clearTimeout(this.announceTimer);
    this.announceTimer = setTimeout(() => {
      const words = [...this.sentences.querySelectorAll("p")].map((each) => each.textContent).join(" ");
      this.state.announce(words);
    }, ANNOUNCE_AFTER_MS);
  }

  // Show the answer; its chart is of the first repetition, and is drawn once for the answers to one question.
  paint(number = null) {
    const answer = this.answer;
    this.sentences.classList.remove("waiting");
    const names = [...new Set(answer.sides.flatMap((side) => side.queues.map((each) => each.queue)))];
    if (!names.includes(this.queueName)) {
      const wanted = this.state.parameters.get("queue");
      this.queueName = names.includes(wanted) ? wanted : this.mostTelling(names);
    }
    if ([...this.queue.options].map((each) => each.value).join("\n") !== names.join("\n")) {
      this.queue.replaceChildren(...names.map((name) => h("option", { value: name }, shown(name))));
    }
    this.queue.value = this.queueName;
    this.paintSentences();
    const drawn = `${number} ${this.queueName}`;
    if (number === null || drawn !== this.drawn) this.paintChart();
    this.drawn = number === null ? null : drawn;
    this.paintFigures(names);
  }

  // The queue that loses most, else the one whose messages wait longest.
  mostTelling(names) {
    const of = (name, measure) => this.of(0, name)?.measures[measure]?.[0] ?? 0;
    const most = (measure) => names.reduce((best, name) => (of(name, measure) > of(best, measure) ? name : best), names[0]);
    const losing = most("loss_ratio");
    return of(losing, "loss_ratio") > 0 ? losing : most("time_in_queue_p99");
  }

  of(side, queue) {
    return this.answer.sides[side]?.queues.find((each) => each.queue === queue);
  }

  chooseQueue() {
    this.queueName = this.queue.value;
    this.state.set({ queue: this.queueName });
    this.writing.replaceChildren();
    if (this.answer) this.paint();
  }

  paintSentences() {
    const lines = this.answer.sides.map((_, side) => [this.badge(side), this.of(side, this.queueName)?.sentence ?? "No messages."]);
    const difference = this.answer.differences.find((each) => each.queue === this.queueName);
    if (difference) lines.push([null, difference.sentence]);
    const made = lines.map(([badge, text]) => h("p", {}, badge, shown(text)));
    this.sentences.replaceChildren(...made);
  }

  badge(side) {
    if (!this.hasB && this.answer.sides.length < 2) return null;
    return h("span", { class: `badge ${side === 0 ? "first" : "second"}` }, "AB"[side]);
  }

  paintChart() {
    const found = this.answer.sides
      .map((_, side) => [side, this.of(side, this.queueName)])
      .filter(([, queue]) => queue?.depth)
      .map(([side, queue]) => ({
        name: "AB"[side], className: side === 0 ? "first" : "second", points: queue.depth.mean, low: queue.depth.low, high: queue.depth.high,
      }));
    const clients = this.of(0, this.queueName)?.clients ?? 1;
    const seconds = this.answer.horizon_ns / 1e9;
    const words = found.map((each) => `${found.length > 1 ? `${each.name}: ` : ""}at most ${figure(Math.max(...each.high))} messages, ${figure(each.points.reduce((sum, value) => sum + value, 0) / each.points.length)} on average`);
    this.chart.draw({
      series: found,
      from: 0,
      to: seconds,
      x: { title: "simulated time", text: (value) => duration(value * 1e9) },
      y: { title: `Messages in ${shown(this.queueName)}${clients > 1 ? ` of ${clients} clients` : ""}`, text: (value) => figure(value) },
      words: `Depth of ${shown(this.queueName)} over ${duration(this.answer.horizon_ns)}: ${words.join("; ")}.`,
    });
    const sides = found.length > 1 ? [h("span", {}, this.badge(0), "line"), h("span", {}, this.badge(1), "dashed line")] : [];
    this.legend.replaceChildren(...sides, h("span", { class: "faint" }, "First repetition; the band is from the lowest to the highest depth of an interval."));
    this.fillTable();
  }

  fillTable() {
    if (!this.asTable.open || !this.answer) return;
    const sides = this.answer.sides.map((_, side) => this.of(side, this.queueName)?.depth).filter(Boolean);
    const count = sides[0]?.mean.length ?? 0;
    const step = Math.max(1, Math.ceil(count / TABLE_ROWS));
    const head = sides.flatMap((_, side) => ["lowest", "mean", "highest"].map((name) => h("th", { scope: "col", class: "number" }, `${sides.length > 1 ? `${"AB"[side]} ` : ""}${name}`)));
    const rows = [];
    for (let at = 0; at < count; at += step) {
      const cells = sides.flatMap((depth) => {
        const part = (name) => depth[name].slice(at, at + step);
        const mean = part("mean").reduce((sum, value) => sum + value, 0) / part("mean").length;
        return [Math.min(...part("low")), mean, Math.max(...part("high"))].map((value) => h("td", { class: "number" }, figure(value)));
      });
      const from = (this.answer.horizon_ns * at) / count;
      rows.push(h("tr", {}, h("th", { scope: "row" }, `from ${duration(from)}`), cells));
    }
    const caption = h("caption", { class: "hidden" }, `Depth of ${shown(this.queueName)} in messages`);
    this.table.replaceChildren(h("table", {}, caption, h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "Time"), head)), h("tbody", {}, rows)));
  }

  paintFigures(names) {
    const { measures, sides, differences } = this.answer;
    const isPair = sides.length > 1;
    const head = measures.map((measure) => h("th", { scope: "col", class: "number" }, measure.title));
    const rows = [];
    for (const name of names) {
      sides.forEach((_, side) => {
        const queue = this.of(side, name);
        if (queue) rows.push(this.figureRow(name, isPair ? this.badge(side) : null, queue.measures, measures));
      });
      const difference = differences.find((each) => each.queue === name);
      if (difference) rows.push(this.figureRow(name, "B − A ", difference.measures, measures, true));
    }
    const caption = h("caption", { class: "hidden" }, "Figures of each queue with half the interval");
    this.figures.replaceChildren(h("table", { class: "figures" }, caption, h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "Queue"), head)), h("tbody", {}, rows)));
  }

  figureRow(name, mark, found, measures, isDifference = false) {
    const cells = measures.map((measure) => {
      const [mean, width] = found[measure.name] ?? [null, null];
      const isClear = isDifference && mean !== null && width !== null && Math.abs(mean) > width;
      const error = width ? h("span", { class: "error-width" }, ` ± ${measureText(width, measure.unit)}`) : null;
      return h("td", { class: isClear ? "number clear" : "number" }, measureText(mean, measure.unit, isDifference), error);
    });
    return h("tr", { class: isDifference ? "difference" : null }, h("th", { scope: "row" }, mark, shown(name)), cells);
  }

  // Commands and files.

  async write() {
    const side = this.edited === "b" ? 1 : 0;
    const queue = this.answer ? this.of(side, this.queueName) : null;
    const wanted = {
      source: this.source.value, settings: Object.fromEntries(this.sides[this.edited]), seed: this.seed.value === "" ? null : Number(this.seed.value),
      repetitions: Number(this.repetitions.value) || USUAL_REPETITIONS, varied: this.varied, queue: this.queueName ?? "",
      lost: queue?.measures.loss_ratio?.[0] ?? 0, wait_p99_ns: queue?.measures.time_in_queue_p99?.[0] ?? 0,
    };
    try {
      const { written } = await post("/api/what-if/written", wanted);
      const of = this.hasB ? `Of ${this.edited.toUpperCase()}, whose settings are shown.` : "";
      this.writing.replaceChildren(h("p", { class: "faint" }, of), ...written.flatMap((each) => this.form(each)));
    } catch (error) {
      this.writing.replaceChildren(h("p", { class: "error", role: "alert" }, shown(explained(error))));
    }
  }

  form({ name, title, text, file, use, problem }) {
    const heading = h("h3", {}, shown(file ? `${title}: ${file}` : title));
    if (problem) return [heading, h("p", { class: "faint" }, shown(problem))];
    const copy = h("button", { type: "button", "aria-label": `Copy: ${shown(title)}`, onclick: async () => {
      try {
        await navigator.clipboard.writeText(text);
        this.state.announce("Copied");
        setText(copy, "Copied");
      } catch {
        getSelection().selectAllChildren(block);
        this.state.announce("Selected: copy it with the keyboard");
      }
    } }, "Copy");
    const block = h("pre", { "data-form": name, tabindex: "0" }, text);
    const save = file && h("button", { type: "button", onclick: () => download(file, text) }, `Save ${shown(file)}`);
    return [heading, block, h("p", { class: "buttons" }, copy, save || null), use ? h("p", { class: "faint" }, "Use: ", h("code", {}, shown(use))) : null].filter(Boolean);
  }
}

function download(name, text) {
  const address = URL.createObjectURL(new Blob([text], { type: "text/plain" }));
  const link = h("a", { href: address, download: name.split("/").at(-1) });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}
