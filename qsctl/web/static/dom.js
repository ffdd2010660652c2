// Elements made of data. Text is set as text, never parsed: a queue's name or a payload cannot become markup.

// Return an element with attributes, listeners ("onclick": function) and children (elements or text).
export function h(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

// Return an element of SVG.
export function svg(tag, attributes = {}, ...children) {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (typeof value === "function") element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

// Set the text of an element where it differs: an unchanged node is not painted, and not read out again. Its text node
// stays, which costs less than a new one.
export function setText(element, text) {
  const node = element.firstChild;
  if (node === null) {
    if (text !== "") element.textContent = text;
  } else if (node === element.lastChild && node.nodeType === Node.TEXT_NODE) {
    if (node.data !== text) node.data = text;
  } else {
    element.textContent = text;
  }
}
