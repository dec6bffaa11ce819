// Makes text of peers visible, and creates elements.
// Owns the only way from peers' text into the page: as text nodes. Invisible characters, and those that change the
// direction of the line, become boxed marks. No markup is ever created from a text.

// The same characters and exceptions as in core/sanitize.py; a test compares them.
const INVISIBLE = String.raw`\u{ad}\u{34f}\u{61c}\u{115f}\u{1160}\u{17b4}\u{17b5}\u{180b}-\u{180f}\u{200b}-\u{200f}\u{202a}-\u{202e}\u{2060}-\u{206f}\u{3164}\u{fe00}-\u{fe0f}\u{feff}\u{ffa0}\u{fff0}-\u{fffb}\u{1bca0}-\u{1bca3}\u{1d173}-\u{1d17a}\u{e0000}-\u{e0fff}`;
const EMOJI = String.raw`[\u{a9}\u{ae}\u{203c}\u{2049}\u{2122}\u{2139}\u{2190}-\u{21ff}\u{2300}-\u{23ff}\u{24c2}\u{25a0}-\u{27bf}\u{2934}\u{2935}\u{2b00}-\u{2bff}\u{3030}\u{303d}\u{3297}\u{3299}\u{1f000}-\u{1faff}]`; // Emoji, and characters with a form as emoji.
const JOINED = String.raw`[\u{620}-\u{6dc}\u{6de}-\u{70e}\u{710}-\u{8e1}\u{8e3}-\u{dff}\u{1000}-\u{109f}\u{1780}-\u{17b3}\u{17b6}-\u{17ff}\u{1820}-\u{18aa}]`; // Scripts in which joiners change the shape of a word.
const NEEDED = [
  String.raw`(?:(?<=${EMOJI})|(?<=${EMOJI}[\ufe0e\ufe0f]))\u200d(?=${EMOJI})`,
  String.raw`(?<=${JOINED})[\u200c\u200d](?=${JOINED})`,
  String.raw`(?<=${EMOJI})[\ufe0e\ufe0f]`,
  String.raw`(?<=[#*0-9])\ufe0f(?=\u20e3)`,
  // The flags of England, Scotland and Wales: a black flag, and its name in tags.
  ...[
    "\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e0067}",
    "\u{e0067}\u{e0062}\u{e0073}\u{e0063}\u{e0074}",
    "\u{e0067}\u{e0062}\u{e0077}\u{e006c}\u{e0073}",
  ].map((name) => String.raw`(?<=\u{1f3f4})${name}\u{e007f}`),
];
const UNSEEN = new RegExp(String.raw`(${NEEDED.join("|")})|[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}\p{Co}\u2800${INVISIBLE}]`, "gu");

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
    if (found[1] || (lines && (code === 10 || code === 9))) continue;
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

/** Return the arrow of a message from the client (to the right) or from the server; drawn, as fonts may lack it. */
function arrow(side) {
  return side ? make(`i.arrow.${side}`) : null;
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
