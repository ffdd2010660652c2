// The view "Engine": the threads of a site as a graph, with what waits at each, and the same as a table.

import { get } from "./api.js";
import { h, setText, svg } from "./dom.js";
import { explained, figure, shown } from "./format.js";
import { repeated } from "./repeat.js";

const COLUMN = 190;
const ROW = 44;
const BOX = 150;
const HIGH = 30;

export function mount(element, state) {
  const { parameters } = state;
  const error = h("p", { class: "error", role: "alert", hidden: true });
  const note = h("p", { class: "faint" });
  const filter = h("input", { type: "search", id: "filter", value: parameters.get("filter") ?? "", maxlength: "255", autocomplete: "off", spellcheck: "false",
    oninput: () => { state.set({ filter: filter.value }); look(); } });
  const drawing = h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Graph of the threads" });
  const list = h("div", {});
  element.append(h("h1", {}, "Engine"), error, h("div", { class: "bar" }, h("label", { for: "filter" }, "Threads "), filter), note, drawing,
    h("h2", {}, "Threads"), list);
  state.key("/", "filter the threads", () => filter.focus());
  let over = false;
  let before = "";

  async function look() {
    const asked = filter.value;
    let found;
    try {
      found = await get("/api/engine", { filter: asked });
    } catch (failed) {
      setText(error, explained(failed));
      error.hidden = false;
      return;
    }
    if (over || asked !== filter.value) return;
    setText(error, found.error);
    error.hidden = found.error === "";
    const shownCount = found.threads.length < found.count ? `${found.threads.length} of ${found.count} threads: filter for others. ` : "";
    setText(note, `${shown(found.title)}. ${shownCount}${found.has_depths ? `${found.elsewhere} messages wait at other threads.` : "Add --engine SOURCE to see what waits."}`);
    const now = JSON.stringify(found);
    if (now === before) return;
    before = now;
    drawing.replaceChildren(graph(found));
    list.replaceChildren(h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Threads" }, h("table", {},
      h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "Thread"), h("th", { scope: "col" }, "Process"), h("th", { scope: "col", class: "number" }, "Waiting"), h("th", { scope: "col" }, "Feeds"))),
      h("tbody", {}, found.threads.map((each) => h("tr", {}, h("th", { scope: "row" }, shown(each.name)), h("td", {}, shown(each.process)),
        h("td", { class: "number" }, found.has_depths ? figure(each.depth) : "–"),
        h("td", {}, found.links.filter((link) => link.source === each.name).map((link) => `${shown(link.destination)}${link.kind === "route" ? "" : ` (${link.kind})`}`).join(", "))))))));
  }

  const end = repeated(look, 2000);
  return () => {
    over = true;
    end();
  };
}

function graph(found) {
  const at = new Map(found.threads.map((each) => [each.name, [each.column * COLUMN + 8, each.place * ROW + 8]]));
  const wide = Math.max(1, ...found.threads.map((each) => each.column + 1)) * COLUMN;
  const high = Math.max(1, ...found.threads.map((each) => each.place + 1)) * ROW + 8;
  const most = Math.max(1, ...found.threads.map((each) => each.depth));
  const links = found.links.map((link) => {
    const [x, y] = at.get(link.source);
    const [x2, y2] = at.get(link.destination);
    const [from, to, middle] = [x + BOX, x2, (x + BOX + x2) / 2];
    return svg("path", { class: link.kind === "route" ? "link" : "link other", fill: "none", d: `M${from} ${y + HIGH / 2}C${middle} ${y + HIGH / 2} ${middle} ${y2 + HIGH / 2} ${to} ${y2 + HIGH / 2}` });
  });
  const boxes = found.threads.map((each) => {
    const [x, y] = at.get(each.name);
    const name = shown(each.name);
    const label = name.length > 16 ? `${name.slice(0, 8)}…${name.slice(-7)}` : name;
    return svg("g", {},
      svg("title", {}, `${name}: ${figure(each.depth)} wait`),
      svg("rect", { class: "thread", x, y, width: BOX, height: HIGH, rx: 4 }),
      each.depth ? svg("rect", { class: "waiting", x, y: y + HIGH - 4, width: Math.max(3, (BOX * each.depth) / most), height: 4 }) : null,
      svg("text", { x: x + 6, y: y + 19 }, label),
      each.depth ? svg("text", { class: "depth", x: x + BOX - 6, y: y + 19, "text-anchor": "end" }, figure(each.depth)) : null);
  });
  return svg("svg", { class: "graph", width: wide, height: high, role: "img", "aria-label": `${found.threads.length} threads and ${found.links.length} links; the table below has the same` }, links, boxes);
}
