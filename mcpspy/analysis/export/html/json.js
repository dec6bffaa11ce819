// Lays out JSON from its text, and only the parts that the reader sees.
// Owns the tree and its folds. Nothing is decoded: duplicate keys, `1.0`, thirty-digit integers and escapes appear as
// they were sent.

const PAGE = 100; // Members or items that are laid out together.
const LINES = 400; // Lines that are laid out before the rest is folded.
const SMALL = 4000; // Characters that are laid out at once while lines are left.
const LONG = 1200; // Longest string that is shown completely.
const WHOLE = 100_000; // The same for a string with a search hit; also the characters that one click adds.
const DEEP = 30; // Levels that are laid out at first: browsers fail with thousands of nested elements.

// Prefixes of Base64 images. An image is shown on request only; everything else of a peer is shown as text.
const PICTURES = [
  ["image/png", "iVBORw0KGgo"],
  ["image/jpeg", "/9j/"],
  ["image/gif", "R0lGOD"],
  ["image/webp", "UklGR"],
];

const isBlank = (code) => code === 32 || code === 10 || code === 13 || code === 9;

function skipBlanks(text, at) {
  while (isBlank(text.charCodeAt(at))) at++;
  return at;
}

/** Return the end of a string, given its start. */
function stringEnd(text, at) {
  for (;;) {
    at = text.indexOf('"', at + 1);
    let slashes = at;
    while (text.charCodeAt(slashes - 1) === 92) slashes--;
    if ((at - slashes) % 2 === 0) return at + 1;
  }
}

/** Return the end of a valid JSON value, given its start. */
function valueEnd(text, at) {
  const first = text.charCodeAt(at);
  if (first === 34) return stringEnd(text, at);
  if (first !== 123 && first !== 91) {
    while (at < text.length && !isBlank(text.charCodeAt(at)) && !",]}".includes(text[at])) at++;
    return at;
  }
  let depth = 0;
  for (;;) {
    const code = text.charCodeAt(at);
    if (code === 34) {
      at = stringEnd(text, at);
      continue;
    }
    if (code === 123 || code === 91) depth++;
    else if ((code === 125 || code === 93) && --depth === 0) return at + 1;
    at++;
  }
}

/** Return the members of an object or the items of an array, four numbers each: start and end of key and value. */
function partsOf(text, at) {
  const parts = [];
  const isObject = text[at] === "{";
  at = skipBlanks(text, at + 1);
  while (text[at] !== "}" && text[at] !== "]") {
    const key = at;
    let keyEnd = at;
    if (isObject) {
      keyEnd = stringEnd(text, key);
      at = skipBlanks(text, skipBlanks(text, keyEnd) + 1);
    }
    const end = valueEnd(text, at);
    parts.push(key, keyEnd, at, end);
    at = skipBlanks(text, end);
    if (text[at] === ",") at = skipBlanks(text, at + 1);
  }
  return parts;
}

function isJson(text) {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

/** Return an element with a JSON text laid out in at most `lines` lines; parts with `words` are always unfolded. */
function layOut(text, words = [], lines = LINES) {
  const at = skipBlanks(text, 0);
  const wanted = words.filter((word) => !word.without);
  const plan = { text, wanted, left: lines, small: lines > LINES ? Infinity : SMALL };
  return make("div.json", {}, node(plan, [at, at, at, valueEnd(text, at)], 0, ""));
}

function holds(plan, begin, end) {
  if (!plan.wanted.length) return false;
  const slice = plan.text.slice(begin, end);
  return plan.wanted.some(({ pattern }) => occurs(pattern, slice));
}

function node(plan, [key, keyEnd, at, end], depth, comma) {
  const { text } = plan;
  plan.left--;
  const named = keyEnd > key ? [make("span.key", {}, ...visible(text.slice(key, keyEnd))), ": "] : [];
  const first = text[at];
  const isContainer = (first === "{" || first === "[") && skipBlanks(text, at + 1) < end - 1;
  if (!isContainer) return make("div.line", {}, ...named, ...leaf(plan, at, end), comma);
  return container(plan, named, at, end, depth, comma);
}

function container(plan, named, at, end, depth, comma) {
  const { text } = plan;
  const [opening, closing] = [text[at], text[end - 1]];
  const fold = make("button.fold", { type: "button", "aria-label": "fold" });
  const summary = make("span.count");
  const inner = make("div.inner");
  const last = make("div.line", {}, closing, comma);
  const head = make("div.line", {}, fold, ...named, opening, summary);
  let parts = null;
  const open = (isOpen) => {
    parts ??= partsOf(text, at);
    if (isOpen && !inner.firstChild) fill(plan, inner, parts, depth + 1);
    const count = parts.length / 4;
    summary.textContent = isOpen ? "" : ` … ${plural(count, opening === "{" ? "member" : "item")}, ${size(end - at)} ${closing}${comma}`;
    inner.hidden = last.hidden = !isOpen;
    fold.setAttribute("aria-expanded", String(isOpen));
  };
  const short = end - at <= plan.small || depth < 2;
  open(depth % DEEP !== DEEP - 1 && (depth === 0 || (short && plan.left > 0) || holds(plan, at, end)));
  fold.addEventListener("click", () => {
    plan.left = PAGE;
    open(inner.hidden);
  });
  return make("div.node", {}, head, inner, last);
}

/** Lay out the first items of a range, those with search hits, and a button for each gap in between. */
function fill(plan, inner, parts, depth, from = 0, until = parts.length / 4, before = null) {
  const many = parts.length / 4;
  const put = (element) => inner.insertBefore(element, before);
  const lay = (i) => put(node(plan, parts.slice(i * 4, i * 4 + 4), depth, i < many - 1 ? "," : ""));
  const skip = (begin, end) => begin < end && put(gap(plan, inner, parts, depth, begin, end));
  let next = from;
  let found = 0;
  for (let i = from; i < until; i++) {
    const isFirst = i < from + PAGE;
    if (!isFirst && (found === PAGE || !holds(plan, parts[i * 4], parts[i * 4 + 3]))) continue;
    if (!isFirst) found++;
    skip(next, i);
    lay(i);
    next = i + 1;
  }
  skip(next, until);
}

function gap(plan, inner, parts, depth, from, until) {
  const button = make("button.more", { type: "button" }, `… ${commas(until - from)} more`);
  button.addEventListener("click", () => {
    fill({ ...plan, wanted: [], left: PAGE }, inner, parts, depth, from, until, button);
    button.remove();
  });
  return button;
}

/** Return the nodes of a string, a number, a literal or an empty container. */
function leaf(plan, at, end) {
  const text = plan.text;
  const first = text[at];
  if (first !== '"') {
    const kind = "{[".includes(first) ? "plain" : "tfn".includes(first) ? "word" : "number";
    return [make(`span.${kind}`, {}, ...visible(text.slice(at, end)))];
  }
  const isWhole = end - at <= LONG || (end - at <= WHOLE && holds(plan, at + LONG / 2, end));
  const nodes = stretches(text.slice(at, end), isWhole ? end - at : LONG / 2, WHOLE, make("span.string"));
  const start = text.slice(at, Math.min(end, at + 100_000));
  const type = PICTURES.find(([, sign]) => start.startsWith(sign, 1))?.[0];
  if (type && end - at > LONG) {
    nodes.push(...reader("image", () => make("img", { src: `data:${type};base64,${JSON.parse(text.slice(at, end))}`, alt: "" })));
  } else if (/^"\s*[{[]/.test(start) || /\\[nt]/.test(start)) {
    nodes.push(...reader("decoded", () => readable(plan, JSON.parse(text.slice(at, end)))));
  }
  return nodes;
}

/** Return the content of a string: its lines, or the JSON in it. */
function readable(plan, text) {
  return /^\s*[{[]/.test(text) && isJson(text) ? layOut(text, plan.wanted) : plainText(text, plan.wanted);
}

/** Return a button that shows the decoded form of a string, and the element for it. */
function reader(name, show) {
  const shown = make("div.read", { hidden: true });
  const button = make("button.more", { type: "button", "aria-expanded": "false" }, name);
  button.addEventListener("click", () => {
    if (!shown.firstChild) shown.append(show());
    shown.hidden = !shown.hidden;
    button.setAttribute("aria-expanded", String(!shown.hidden));
    button.textContent = shown.hidden ? name : "close";
  });
  return [button, shown];
}
