// The frame of the page: which view is mounted, the theme, the keys.
//
// A view is an ES module with `mount(element, state)`, which returns what unmounts it. `state` has
//   parameters  of the address, as URLSearchParams: #/live?sort=depth
//   set(changes)  changes parameters in the address (null removes one) and mounts nothing anew
//   go(view, parameters)  goes to a view
//   announce(text)  has a screen reader read a text
//   page  what the server has: { views, sources, allow_changes }
//   keys  a list of [key, what it does] for the list of keys; a view adds its own with state.key(key, words, action)

import { get, takeToken } from "./api.js";
import { h, setText } from "./dom.js";
import { explained } from "./format.js";
import * as about from "./about.js";
import * as cluster from "./cluster.js";
import * as engine from "./engine.js";
import * as live from "./live.js";
import * as queue from "./queue.js";
import * as what_if from "./what_if.js";

const views = { live, what_if, queue, cluster, engine, about };

const main = document.getElementById("main");
const KEPT_THEME = "qsctl-theme";
const WRITE_AFTER_MS = 100;
const THEMES = ["system", "light", "dark"];
let page = { views: [], sources: [], allow_changes: false };
let unmount = () => {};
let shownHash = null;
let wanted = null;
let writing = null;
let viewKeys = [];

function address() {
  const [name, query = ""] = location.hash.replace(/^#\/?/, "").split(/\?(.*)/s);
  return { name: name || page.views[0]?.name || "about", parameters: new URLSearchParams(query) };
}

function hashOf(name, parameters) {
  const query = new URLSearchParams(parameters).toString();
  return `#/${name}${query ? `?${query}` : ""}`;
}

// Write the address at once, and again behind what is written within the next moment: browsers ignore further changes
// of an address after some hundred in ten seconds, which a slider makes in two.
function writeAddress(name, parameters) {
  wanted = hashOf(name, parameters);
  if (writing !== null) return;
  keepAddress();
  writing = setTimeout(() => {
    writing = null;
    keepAddress();
  }, WRITE_AFTER_MS);
}

function keepAddress() {
  if (shownHash === wanted) return;
  shownHash = wanted;
  history.replaceState(null, "", shownHash);
}

function announce(text) {
  setText(document.getElementById("announcer"), text);
}

function showView() {
  if (location.hash === shownHash) return;
  shownHash = location.hash;
  const { name, parameters } = address();
  clearTimeout(writing);
  writing = null;
  unmount();
  viewKeys = [];
  main.replaceChildren();
  const title = page.views.find((view) => view.name === name)?.title ?? "Queue";
  document.title = `${title} – qsctl`;
  for (const link of document.querySelectorAll("#views a")) {
    if (link.dataset.view === name) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  const view = Object.hasOwn(views, name) ? views[name] : null;
  if (view === null) {
    main.append(h("h1", {}, "Not found"), h("p", {}, "The page has no such view."));
    unmount = () => {};
    return;
  }
  const state = {
    parameters,
    page,
    announce,
    set(changes) {
      for (const [key, value] of Object.entries(changes)) {
        if (value === null || value === "") parameters.delete(key);
        else parameters.set(key, value);
      }
      writeAddress(name, parameters);
    },
    go(other, of = {}) {
      location.hash = hashOf(other, of);
    },
    key(key, words, action) {
      viewKeys.push([key, words, action]);
    },
  };
  unmount = view.mount(main, state) ?? (() => {});
}

function showTheme(theme) {
  if (theme === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  setText(document.getElementById("theme"), `Theme: ${theme}`);
}

function keptTheme() {
  try {
    const theme = localStorage.getItem(KEPT_THEME);
    return THEMES.includes(theme) ? theme : "system";
  } catch {
    return "system";
  }
}

function nextTheme() {
  const theme = THEMES[(THEMES.indexOf(keptTheme()) + 1) % THEMES.length];
  try {
    localStorage.setItem(KEPT_THEME, theme);
  } catch {
    // It lasts until the page is reloaded.
  }
  showTheme(theme);
  announce(`Theme: ${theme}`);
}

function showKeys() {
  const close = () => dialog.close();
  const rows = [...commonKeys(), ...viewKeys].map(([key, words]) =>
    h("tr", {}, h("th", { scope: "row" }, h("kbd", {}, key)), h("td", {}, words)),
  );
  const dialog = h(
    "dialog",
    { "aria-labelledby": "keys-title" },
    h("h2", { id: "keys-title" }, "Keys"),
    h("table", {}, h("tbody", {}, rows)),
    h("p", { class: "buttons" }, h("button", { type: "button", onclick: close, autofocus: true }, "Close")),
  );
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}

function commonKeys() {
  return [
    ["?", "this list", showKeys],
    ["t", "next theme", nextTheme],
    ...page.views.map((view, at) => [String(at + 1), `view ${view.title}`, () => (location.hash = `#/${view.name}`)]),
  ];
}

function onKey(event) {
  const writes = event.target.closest("input, select, textarea, dialog, [contenteditable]");
  if (writes || event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
  const found = [...viewKeys, ...commonKeys()].find(([key]) => key === event.key);
  if (found) {
    event.preventDefault();
    found[2]();
  }
}

async function start() {
  takeToken();
  showTheme(keptTheme());
  document.getElementById("theme").addEventListener("click", nextTheme);
  document.getElementById("keys").addEventListener("click", showKeys);
  document.getElementById("skip").addEventListener("click", (event) => {
    event.preventDefault();
    main.focus();
  });
  document.addEventListener("keydown", onKey);
  try {
    page = await get("/api/views");
  } catch (error) {
    main.replaceChildren(h("h1", {}, "Refused"), h("p", { role: "alert" }, explained(error)));
    return;
  }
  const links = page.views.map((view) => h("li", {}, h("a", { href: `#/${view.name}`, "data-view": view.name }, view.title)));
  document.getElementById("views").replaceChildren(...links);
  window.addEventListener("hashchange", showView);
  window.addEventListener("pagehide", () => writing !== null && keepAddress());
  showView();
}

start();
