// Figures for people.

const LARGE = ["", "k", "M", "G", "T"];

// Return a figure in about five characters: 12, 3.46, 12.3k.
export function figure(value) {
  if (value === null || value === undefined) return "–";
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (typeof value !== "number") return String(value);
  let size = Math.abs(value);
  if (size < 10000) {
    if (Number.isInteger(value)) return String(value);
    return size >= 100 ? value.toFixed(0) : String(Number(value.toPrecision(3)));
  }
  let at = 0;
  while (size >= 999.5 && at < LARGE.length - 1) {
    size /= 1000;
    at += 1;
  }
  return `${value < 0 ? "-" : ""}${Number(size.toPrecision(3))}${LARGE[at]}`;
}

// Return a count with its noun: 1 replica, 2 replicas.
export function counted(count, noun) {
  return `${count} ${noun}${count === 1 ? "" : "s"}`;
}

// Return an error with its remedy, as sentences.
export function explained(error) {
  const { message, remedy = "" } = error;
  return remedy === "" || /[.!?]$/.test(message) ? `${message} ${remedy}`.trim() : `${message}. ${remedy}`;
}

// Return a span of seconds: 45 s, 10 min.
export function span(seconds) {
  if (seconds < 120) return `${Number(seconds.toPrecision(2))} s`;
  if (seconds < 7200) return `${Math.round(seconds / 60)} min`;
  return `${Number((seconds / 3600).toPrecision(2))} h`;
}

// Return a text whose control characters and changes of direction are visible: a name cannot imitate another.
export function shown(text) {
  return String(text).replace(
    /[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}
