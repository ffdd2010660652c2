// The view "Cluster": the replicas of each replicated queue, with their lag.

import { get } from "./api.js";
import { h, setText } from "./dom.js";
import { counted, explained, figure, shown } from "./format.js";
import { repeated } from "./repeat.js";

const COLUMNS = [["queue_name", "Queue"], ["service", "Service"], ["role", "Role"], ["lag_count", "Lag"], ["up_to_date_count", "Up to date"],
  ["replica_count", "Replicas"], ["quorum_count", "Quorum"], ["has_quorum", "Has quorum"], ["epoch", "Epoch"], ["master", "Master"], ["reason", "Reason"]];
const NUMBERS = new Set(["lag_count", "up_to_date_count", "replica_count", "quorum_count", "epoch"]);

export function mount(element, state) {
  const error = h("p", { class: "error", role: "alert", hidden: true });
  const note = h("p", { class: "summary", role: "status" });
  const body = h("tbody", {});
  const heading = h("tr", {});
  const region = h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Replicas" }, h("table", {}, h("thead", {}, heading), body));
  element.append(h("h1", {}, "Cluster"), error, note, region);
  let over = false;
  let before = "";

  async function look() {
    let found;
    try {
      found = await get("/api/cluster");
    } catch (failed) {
      setText(error, explained(failed));
      error.hidden = false;
      region.classList.add("old");
      return;
    }
    if (over) return;
    error.hidden = true;
    region.classList.remove("old");
    const queues = new Set(found.rows.map((row) => row.queue_name).filter((name) => name));
    const silent = found.rows.filter((row) => row.role === "no answer").length;
    const lost = found.rows.filter((row) => row.has_quorum === false).length;
    setText(note, found.count === 0 ? "No queue is replicated." : `${counted(queues.size, "replicated queue")}; ${counted(lost, "replica")} without a quorum; ${counted(silent, "service")} without an answer.`);
    const now = JSON.stringify(found);
    if (now === before) return;
    before = now;
    heading.replaceChildren(...COLUMNS.map(([field, title]) => h("th", { scope: "col", class: NUMBERS.has(field) ? "number" : "", title: found.help[field] }, title)));
    body.replaceChildren(...found.rows.map((row) => h("tr", { class: row.has_quorum === false || row.role === "no answer" ? "wrong" : "" }, COLUMNS.map(([field], at) => {
      const value = typeof row[field] === "string" ? shown(row[field]) : figure(row[field]);
      return at === 0 ? h("th", { scope: "row" }, value) : h("td", { class: NUMBERS.has(field) ? "number" : "" }, value);
    }))));
  }

  const end = repeated(look, 2000);
  state.key("r", "ask again", look);
  return () => {
    over = true;
    end();
  };
}
