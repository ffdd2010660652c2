// Requests to the server. Each carries the token, which the page's address had once; it is kept where only scripts of
// this origin, address and port, read it.

const KEPT = "qsctl-token";
let token = "";

// Move the token out of the address, so that it is in no history and no copied address.
export function takeToken() {
  const address = new URL(location.href);
  const given = address.searchParams.get("token");
  if (given !== null) {
    token = given;
    keep(given);
    address.searchParams.delete("token");
    history.replaceState(null, "", address.pathname + address.search + address.hash);
  } else {
    token = kept();
  }
}

function keep(value) {
  try {
    localStorage.setItem(KEPT, value);
  } catch {
    // Storage is switched off: the page works until it is reloaded.
  }
}

function kept() {
  try {
    return localStorage.getItem(KEPT) ?? "";
  } catch {
    return "";
  }
}

// An error that the server explained.
export class Refusal extends Error {
  constructor(message, remedy, status) {
    super(message);
    this.remedy = remedy;
    this.status = status;
  }
}

async function answered(path, options) {
  let response;
  try {
    response = await fetch(path, { ...options, headers: { ...options.headers, "x-qsctl-token": token } });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refusal("qsctl web does not answer.", "Start it again and open the address that it prints.", 8);
  }
  if (!response.ok) {
    const { error } = await response.json().catch(() => ({ error: { message: `Status ${response.status}` } }));
    throw new Refusal(error.message, error.remedy ?? "", error.status ?? 1);
  }
  return response;
}

// Return the document at a path, with parameters.
export async function get(path, parameters = {}, signal = undefined) {
  const query = new URLSearchParams(parameters).toString();
  return (await answered(query ? `${path}?${query}` : path, { signal })).json();
}

// Send a document; return the answer's.
export async function post(path, document, signal = undefined) {
  const options = { method: "POST", body: JSON.stringify(document), signal };
  return (await answered(path, { ...options, headers: { "content-type": "application/json" } })).json();
}

// Follow the events at a path: `onEvent(document)`, `onError(error)`; after an error it is tried again. Return what
// ends it. A hidden page is not sent anything.
export function stream(path, parameters, onEvent, onError) {
  const ended = new AbortController();
  let current = null;
  const query = new URLSearchParams(parameters).toString();

  async function follow() {
    let wait = 500;
    while (!ended.signal.aborted) {
      if (document.hidden) {
        await new Promise((resolve) => document.addEventListener("visibilitychange", resolve, { once: true }));
        continue;
      }
      current = new AbortController();
      try {
        await readEvents(await answered(`${path}?${query}`, { signal: current.signal }), (event) => {
          wait = 500;
          if (!ended.signal.aborted) onEvent(event);
        });
        throw new Refusal("qsctl web has ended.", "Start it again and open the address that it prints.", 8);
      } catch (error) {
        if (ended.signal.aborted) return;
        if (error.name !== "AbortError") {
          onError(error);
          await new Promise((resolve) => setTimeout(resolve, wait));
          wait = Math.min(wait * 2, 10000);
        }
      }
    }
  }

  const onVisibility = () => document.hidden && current?.abort();
  document.addEventListener("visibilitychange", onVisibility);
  follow();
  return () => {
    document.removeEventListener("visibilitychange", onVisibility);
    ended.abort();
    current?.abort();
  };
}

// Send a document and hand over the events of the answer, until it ends or the signal is aborted.
export async function ask(path, document, onEvent, signal) {
  const options = { method: "POST", body: JSON.stringify(document), signal };
  const response = await answered(path, { ...options, headers: { "content-type": "application/json" } });
  await readEvents(response, (event) => signal.aborted || onEvent(event));
}

async function readEvents(response, onEvent) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    text += value;
    const events = text.split("\n\n");
    text = events.pop();
    for (const event of events) {
      if (event.startsWith("data: ")) onEvent(JSON.parse(event.slice(6)));
    }
  }
}
