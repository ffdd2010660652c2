// A chart of lines over time as SVG: for each series a line, and a band from its lowest to its highest values.
//
// chart(element) returns { draw(model), remove() }. The model:
//   series  [{ name, className ("first" or "second"), points: [number|null], low: [number], high: [number] }]
//   from, to  the ends of the horizontal axis, as numbers; every series has equally spaced points between them
//   x, y  { title, text(number) }
//   words  the chart in a sentence, for a screen reader
// The width is that of the element, so that text has the page's size on any screen.

import { svg } from "./dom.js";

const HEIGHT = 280;
const LEFT = 64;
const RIGHT = 12;
const TOP = 14;
const BOTTOM = 44;

export function chart(element) {
  let model = null;
  let drawnWidth = 0;
  const observer = new ResizeObserver(() => {
    if (model !== null && Math.abs(element.clientWidth - drawnWidth) > 1) redraw();
  });
  observer.observe(element);

  function redraw() {
    drawnWidth = element.clientWidth;
    element.replaceChildren(picture(model, Math.max(drawnWidth, 260)));
  }

  return {
    draw(next) {
      model = next;
      redraw();
    },
    remove() {
      observer.disconnect();
      element.replaceChildren();
    },
  };
}

function picture(model, width) {
  const known = model.series.flatMap((series) => [...series.points, ...(series.high ?? [])]).filter((value) => value !== null);
  const most = niceAbove(Math.max(...known, 1));
  const x = (part) => LEFT + part * (width - LEFT - RIGHT);
  const y = (value) => HEIGHT - BOTTOM - (value / most) * (HEIGHT - TOP - BOTTOM);
  const parts = [svg("title", {}, model.words)];
  for (const value of ticks(0, most, 4)) {
    parts.push(svg("line", { class: "grid", x1: LEFT, x2: width - RIGHT, y1: y(value), y2: y(value) }));
    parts.push(svg("text", { class: "tick", x: LEFT - 8, y: y(value) + 4, "text-anchor": "end" }, model.y.text(value)));
  }
  const span = model.to - model.from || 1;
  for (const value of ticks(model.from, model.to, width < 500 ? 3 : 6)) {
    const at = x((value - model.from) / span);
    parts.push(svg("line", { class: "grid", x1: at, x2: at, y1: HEIGHT - BOTTOM, y2: HEIGHT - BOTTOM + 5 }));
    const anchor = at > width - RIGHT - 20 ? "end" : "middle";
    parts.push(svg("text", { class: "tick", x: at, y: HEIGHT - BOTTOM + 19, "text-anchor": anchor }, model.x.text(value)));
  }
  parts.push(svg("text", { class: "axis", x: LEFT, y: HEIGHT - 4 }, `${model.y.title} over ${model.x.title}`));
  for (const series of model.series) {
    const place = (at) => x((at + 0.5) / series.points.length);
    if (series.low && series.high) parts.push(svg("path", { class: `band ${series.className}`, d: bandOf(series, place, y) }));
    parts.push(svg("path", { class: `curve ${series.className}`, d: lineOf(series.points, place, y), fill: "none" }));
  }
  return svg("svg", { class: "chart", role: "img", viewBox: `0 0 ${width} ${HEIGHT}`, width, height: HEIGHT }, parts);
}

function lineOf(points, place, y) {
  let drawn = "";
  let isOn = false;
  points.forEach((point, at) => {
    if (point !== null) drawn += `${isOn ? "L" : "M"}${place(at).toFixed(1)} ${y(point).toFixed(1)}`;
    isOn = point !== null;
  });
  return drawn;
}

function bandOf(series, place, y) {
  const above = series.high.map((value, at) => `${place(at).toFixed(1)} ${y(value).toFixed(1)}`);
  const below = series.low.map((value, at) => `${place(at).toFixed(1)} ${y(value).toFixed(1)}`).reverse();
  return `M${[...above, ...below].join("L")}Z`;
}

function niceAbove(value) {
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 1.5, 2, 3, 4, 5, 6, 8, 10].map((step) => step * power).find((step) => step >= value * 0.999999);
}

function ticks(from, to, wanted) {
  const raw = (to - from) / wanted || 1;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 2.5, 5, 10].map((each) => each * power).find((each) => each >= raw * 0.999999);
  const found = [];
  for (let value = Math.ceil(from / step) * step; value <= to + step * 1e-6; value += step) found.push(value);
  return found;
}
