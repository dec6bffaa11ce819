// Makes text of peers visible, and creates elements.
// Owns the only way from peers' text into the page: as text nodes. Invisible characters, and those that change the
// direction of the line, become boxed marks. No markup is ever created from a text.

const UNSEEN = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}\p{Co}\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0\u{e0100}-\u{e01ef}]/gu;

/** Return an element: `make("p.note", {hidden: true}, "text", child)`. */
function make(what, properties, ...children) {
  const [name, ...classes] = what.split(".");
  const element = document.createElement(name);
  if (classes.length) element.className = classes.join(" ");
  for (const [key, value] of Object.entries(properties ?? {})) {
    if (key in element) element[key] = value;
    else element.setAttribute(key, value);
  }
  element.append(...children.filter((child) => child !== null && child !== ""));
  return element;
}

/** Return nodes for a text; `lines` leaves line feeds and tabs as they are. */
function visible(text, lines = false) {
  const nodes = [];
  let done = 0;
  for (const found of text.matchAll(UNSEEN)) {
    const code = found[0].codePointAt(0);
    if (lines && (code === 10 || code === 9)) continue;
    nodes.push(text.slice(done, found.index), mark(code));
    done = found.index + found[0].length;
  }
  nodes.push(text.slice(done));
  return nodes.filter((node) => node !== "");
}

/** Return the mark of one character. */
function mark(code) {
  const name = `U+${code.toString(16).toUpperCase().padStart(4, "0")}`;
  return make("span.mark", { title: "invisible character" }, name);
}

let silence = 0;

/** Show a short message, and announce it to screen readers. */
function announce(text) {
  clearTimeout(silence);
  byId("announcement").textContent = text;
  silence = setTimeout(() => (byId("announcement").textContent = ""), 2500);
}

function byId(id) {
  return document.getElementById(id);
}
