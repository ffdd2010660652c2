// A small line of the last points of a figure, with its text for a screen reader.

import { setText, svg } from "./dom.js";
import { figure } from "./format.js";

const WIDTH = 96;
const HEIGHT = 22;

// Return an empty line; `draw` fills it.
export function sparkline() {
  const path = svg("path", { class: "line", fill: "none" });
  const title = svg("title", {});
  return svg("svg", { class: "spark", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, width: WIDTH, height: HEIGHT, role: "img" }, title, path);
}

// Draw points, oldest first; null is a gap.
export function draw(line, points, name) {
  const known = points.filter((point) => point !== null);
  const [title, path] = line.children;
  const most = Math.max(...known, 0);
  const least = Math.min(...known, 0);
  const last = known.at(-1);
  const words = known.length === 0 ? `${name}: no history yet` : `${name}: ${figure(last)}, between ${figure(Math.min(...known))} and ${figure(Math.max(...known))}`;
  setText(title, words);
  const drawn = pathOf(points, least, most);
  if (drawn !== path.getAttribute("d")) path.setAttribute("d", drawn);
}

// Return the path of points in a box; a gap ends a line.
export function pathOf(points, least, most, width = WIDTH, height = HEIGHT, inset = 2) {
  const step = (width - 2 * inset) / Math.max(1, points.length - 1);
  const scale = (height - 2 * inset) / (most - least || 1);
  let drawn = "";
  let isOn = false;
  points.forEach((point, at) => {
    if (point === null) {
      isOn = false;
      return;
    }
    const x = (inset + at * step).toFixed(1);
    const y = (height - inset - (point - least) * scale).toFixed(1);
    drawn += `${isOn ? "L" : "M"}${x} ${y}`;
    if (!isOn && (points[at + 1] ?? null) === null) drawn += "h0.1";
    isOn = true;
  });
  return drawn;
}
