// The view "Live": the rows of a source as they change, a page of them at a time.

import { get, stream } from "./api.js";
import { h, setText } from "./dom.js";
import { explained, figure, shown, span } from "./format.js";
import { draw, sparkline } from "./sparkline.js";

const PAGE = 50;

export function mount(element, state) {
  const { parameters, page } = state;
  let end = () => {};
  let rows = new Map();
  let columns = "";
  let latest = null;
  let isStopped = false;
  let errorShown = "";

  const title = h("h1", {}, "Live");
  const summary = h("p", { class: "summary" });
  const error = h("p", { class: "error", role: "alert", hidden: true });
  const note = h("p", { class: "faint" });
  const filter = h("input", {
    type: "search", id: "filter", value: parameters.get("filter") ?? "", maxlength: "255", autocomplete: "off", spellcheck: "false",
    oninput: () => later(() => change({ filter: filter.value, first: null })),
  });
  const stop = h("button", { type: "button", "aria-pressed": "false", onclick: toggleStop }, "Pause");
  const at = h("input", { type: "range", id: "at", min: "0", step: "any", oninput: () => later(() => moveTo(Number(at.value))) });
  const instant = h("output", { for: "at" });
  const play = h("button", { type: "button", "aria-pressed": "false", onclick: togglePlay }, "Play");
  const clock = h("div", { class: "bar", hidden: true }, h("label", { for: "at" }, "Time "), at, instant, play);
  let playing = 0;
  const body = h("tbody", {});
  const heading = h("tr", {});
  const caption = h("caption", { class: "hidden" });
  const table = h("table", { class: "live" }, caption, h("thead", {}, heading), body);
  const region = h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Rows" }, table);
  const before = h("button", { type: "button", onclick: () => turn(-1) }, "Previous page");
  const after = h("button", { type: "button", onclick: () => turn(1) }, "Next page");
  const place = h("span", {});
  const pager = h("p", { class: "buttons" }, before, place, after);
  const sources = h("p", { class: "buttons", role: "group", "aria-label": "Sources" }, page.sources.map((source) =>
    h("button", { type: "button", "data-source": source.name, onclick: () => change({ source: source.name, first: null, sort: null }) }, shown(source.title))));

  element.append(
    title,
    page.sources.length > 1 ? sources : h("p", { class: "faint" }, shown(page.sources[0]?.title ?? "")),
    error,
    h("div", { class: "bar" }, h("label", { for: "filter" }, "Filter "), filter, stop),
    clock, summary, note, region, pager,
  );
  state.key("/", "filter the names: a part, or a pattern like *Orders*", () => filter.focus());
  state.key("n", "next page", () => turn(1));
  state.key("p", "previous page", () => turn(-1));
  state.key("s", "stop, and go on", () => (clock.hidden ? toggleStop() : togglePlay()));

  let timer = 0;

  // Act once the hand rests, and not at each letter.
  function later(action) {
    clearTimeout(timer);
    timer = setTimeout(action, 200);
  }

  function change(changes) {
    state.set(changes);
    follow();
  }

  function turn(by) {
    if (latest === null) return;
    const first = Math.max(0, latest.first + by * PAGE);
    if (first < latest.count) change({ first: String(first) });
  }

  function toggleStop() {
    isStopped = !isStopped;
    stop.setAttribute("aria-pressed", String(isStopped));
    if (isStopped) end();
    else follow();
    state.announce(isStopped ? "Stopped" : "Goes on");
  }

  function follow() {
    end();
    isStopped = false;
    stop.setAttribute("aria-pressed", "false");
    for (const button of sources.children) {
      button.setAttribute("aria-pressed", String(button.dataset.source === chosenSource()));
    }
    const asked = { count: String(PAGE) };
    for (const name of ["source", "filter", "sort", "descending", "first"]) {
      if (parameters.has(name)) asked[name] = parameters.get(name);
    }
    const run = page.sources.find((source) => source.name === "run");
    const isRun = run !== undefined && chosenSource() === "run";
    clock.hidden = !isRun;
    stop.hidden = isRun;
    if (isRun) {
      at.max = String(run.horizon_ns / 1e9);
      moveTo(Number(parameters.get("at") ?? run.horizon_ns / 1e9));
      return;
    }
    end = stream("/api/live", asked, show, (problem) => showError(explained(problem)));
  }

  function chosenSource() {
    return parameters.get("source") ?? page.sources[0]?.name;
  }

  let asking = null;
  async function moveTo(seconds) {
    const most = Number(at.max);
    const wanted = Math.min(Math.max(0, Number.isFinite(seconds) ? seconds : most), most);
    at.value = String(wanted);
    setText(instant, `${wanted.toFixed(3)} s of ${most.toFixed(3)} s`);
    at.setAttribute("aria-valuetext", `${wanted.toFixed(3)} seconds`);
    state.set({ at: wanted === most ? null : wanted.toFixed(6) });
    asking?.abort();
    asking = new AbortController();
    const asked = { count: String(PAGE), at: String(Math.min(Math.round(wanted * 1e9), Math.round(most * 1e9))) };
    for (const name of ["filter", "sort", "descending", "first"]) if (parameters.has(name)) asked[name] = parameters.get(name);
    try {
      show(await get("/api/run", asked, asking.signal));
    } catch (problem) {
      if (problem.name !== "AbortError") showError(explained(problem));
    }
  }

  function togglePlay() {
    if (playing) {
      clearInterval(playing);
      playing = 0;
    } else {
      if (Number(at.value) >= Number(at.max)) at.value = "0";
      playing = setInterval(() => {
        if (Number(at.value) >= Number(at.max)) togglePlay();
        else moveTo(Number(at.value) + Number(at.max) / 200);
      }, 250);
    }
    play.setAttribute("aria-pressed", String(playing !== 0));
    state.announce(playing ? "Plays" : "Stopped");
  }

  function showError(text) {
    error.hidden = text === "";
    if (text !== errorShown) setText(error, text);
    errorShown = text;
    region.classList.toggle("old", text !== "");
  }

  function show(found) {
    latest = found;
    const seen = found.seen_at_s ? ` Last seen ${new Date(found.seen_at_s * 1000).toLocaleTimeString()}.` : "";
    showError(found.error ? `${found.error}${seen} It is asked again.` : "");
    setText(summary, found.summary);
    setText(note, found.note);
    setText(caption, `${found.heading}s of ${found.title || "the run"}`);
    showHeading(found);
    const kept = new Map();
    const order = found.rows.map((row) => {
      const key = JSON.stringify([row.service ?? "", row.name]);
      const line = rows.get(key) ?? makeRow(found, row);
      fillRow(line, found, row);
      kept.set(key, line);
      return line.element;
    });
    rows = kept;
    arrange(order);
    const last = found.first + found.rows.length;
    const filtered = found.count === found.all_count ? "" : `, of ${found.all_count}`;
    setText(place, found.count ? `${found.first + 1} to ${last} of ${found.count}${filtered}` : found.all_count ? "No name fits the filter." : "");
    before.disabled = found.first === 0;
    after.disabled = last >= found.count;
    pager.hidden = found.count <= PAGE && found.count === found.all_count;
  }

  // Put the rows in order. A link loses the focus when its row moves, so it is focused again.
  function arrange(order) {
    const focused = document.activeElement;
    const isInside = body.contains(focused);
    order.forEach((line, at) => {
      if (body.children[at] !== line) body.insertBefore(line, body.children[at] ?? null);
    });
    while (body.children.length > order.length) body.lastChild.remove();
    if (isInside && focused !== document.activeElement && body.contains(focused)) focused.focus({ preventScroll: true });
  }

  function showHeading(found) {
    const sort = parameters.get("sort") ?? "depth";
    const descending = parameters.get("descending") !== "0";
    const wanted = JSON.stringify([found.figures, sort, descending]);
    if (wanted === columns) return;
    const shape = JSON.stringify(found.figures);
    if (columns && JSON.stringify(JSON.parse(columns)[0]) !== shape) {
      rows.clear();
      body.replaceChildren();
    }
    const focused = document.activeElement?.dataset?.sort;
    columns = wanted;
    const cell = (field, words, isText) => {
      const isSorted = field === sort;
      const order = isSorted ? (descending ? "descending" : "ascending") : "none";
      const arrow = isSorted ? (descending ? " ▼" : " ▲") : "";
      return h("th", { scope: "col", "aria-sort": order, class: isText ? "" : "number" },
        h("button", { type: "button", class: "sort", "data-sort": field, onclick: () => sortBy(field, isText) }, words, h("span", { "aria-hidden": "true" }, arrow)));
    };
    heading.replaceChildren(
      cell("name", found.heading, true),
      h("th", { scope: "col" }, `Last ${span(found.span_s)}`),
      ...found.figures.map((each) => cell(each.field, each.heading, each.is_text)),
    );
    if (focused) heading.querySelector(`[data-sort="${CSS.escape(focused)}"]`)?.focus();
  }

  function sortBy(field, isText) {
    const isSame = field === (parameters.get("sort") ?? "depth");
    const descending = isSame ? parameters.get("descending") === "0" : !isText;
    change({ sort: field, descending: descending ? null : "0", first: null });
  }

  function makeRow(found, row) {
    const cells = new Map(found.figures.map((each) => [each.field, h("td", { class: each.is_text ? "" : "number" })]));
    const line = sparkline();
    const name = shown(row.name);
    const query = new URLSearchParams({ source: found.source, name: row.name });
    const label = ["service"].includes(found.source) ? h("a", { href: `#/queue?${query}` }, name) : name;
    const element = h("tr", {}, h("th", { scope: "row" }, label), h("td", {}, line), ...cells.values());
    return { element, cells, line };
  }

  function fillRow(line, found, row) {
    for (const [field, cell] of line.cells) {
      const value = row[field];
      setText(cell, typeof value === "string" ? shown(value) : figure(value));
    }
    draw(line.line, row.history, found.line === "depth" ? "Depth" : found.line);
  }

  follow();
  return () => {
    clearTimeout(timer);
    clearInterval(playing);
    asking?.abort();
    end();
  };
}
