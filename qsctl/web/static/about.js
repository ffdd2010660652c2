// The view "About": how the page is served, and what was refused.

import { get } from "./api.js";
import { h } from "./dom.js";
import { explained, figure } from "./format.js";

export function mount(element, state) {
  const content = h("div", {});
  element.append(h("h1", {}, "About"), content);
  let over = false;

  async function show() {
    let found;
    try {
      found = await get("/api/about");
    } catch (error) {
      content.replaceChildren(h("p", { class: "error", role: "alert" }, explained(error)));
      return;
    }
    if (over) return;
    const refused = Object.entries(found.refused);
    content.replaceChildren(
      h("p", {}, `qsctl ${found.version}, served on this machine alone. `,
        found.allow_changes ? "The page may change queues (--allow-changes)." : "The page may not change queues; start it with --allow-changes for that."),
      h("p", {}, `${figure(found.answered_count)} requests answered; ${found.stream_count} of ${found.streams_max} event streams open.`),
      h("h2", {}, "Refused requests"),
      refused.length === 0
        ? h("p", {}, "None.")
        : h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Refused requests" },
          h("table", {},
            h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "Reason"), h("th", { scope: "col", class: "number" }, "Requests"))),
            h("tbody", {}, refused.map(([reason, count]) => h("tr", {}, h("th", { scope: "row" }, reason), h("td", { class: "number" }, String(count))))),
          )),
      h("p", {}, h("button", { type: "button", onclick: show }, "Look again")),
    );
    state.announce(`${refused.length} reasons of refused requests`);
  }

  show();
  return () => {
    over = true;
  };
}
