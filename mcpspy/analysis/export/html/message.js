// One row in full: request and response side by side, notifications in between, and their HTTP exchange.
// Owns the facts shown around a body, the user's cells and views (docs/scripting.md), and copying.

const STYLES = new Set(["ok", "bad", "quiet", "issue", "title", "key", "string", "number", "word"]);

/** Show a row in an element; `close` is called when the reader closes it. */
function showMessage(element, row, words, close) {
  const bodies = make("div.sides", {}, ...sidesOf(row, words));
  const parts = [
    headOf(row, close),
    make("p.about.aside", {}, factsOf(row)),
    make("p.cells.aside", {}),
    flawsOf(row),
    linksOf(row),
    source.previewOf?.(row) ?? null,
    bodies,
    alongOf(row),
    httpOf(row, words),
  ];
  keepFocus(element, () => element.replaceChildren(...parts.filter((part) => part !== null)));
  element.scrollTop = 0;
  session.views(row, (found) => showViews(element, found));
}

/** Show the user's cells, and the views of bodies, which may arrive later than the message. */
function showViews(element, { cells, views }) {
  const named = session.facts.columns.map((name, i) => [name, cells[i]]).filter(([, cell]) => cell);
  element.querySelector(".cells").replaceChildren(...named.map(([name, cell]) => make("span", {}, ...visible(`${name} `), piece(cell))));
  keepFocus(element, () => {
    for (const box of element.querySelectorAll(".views")) box.replaceChildren(...(views[box.dataset.body] ?? []).map(viewOf));
  });
}

/** Replace content of an element; the focus stays on the part with the same label. */
function keepFocus(element, replace) {
  const label = element.contains(document.activeElement) ? document.activeElement.ariaLabel : null;
  replace();
  if (label && !element.contains(document.activeElement))
    [...element.querySelectorAll("[aria-label]")].find((each) => each.ariaLabel === label)?.focus({ preventScroll: true });
}

/** Return a view: a line with the place of the content, and the lines of the view. */
function viewOf({ pointer, label, lines }) {
  const box = make("div.view", { tabIndex: 0, role: "group", ariaLabel: `View of ${pointer}` });
  box.append(...lines.map((line) => make("div", {}, ...line.map(piece))));
  return make("div", {}, make("p.aside", {}, ...visible(`${pointer}: ${label}`)), box);
}

/** Return a text with its style: one of STYLES, or `#rrggbb on #rrggbb`. */
function piece([text, style]) {
  const made = make(STYLES.has(style) ? `span.${style}` : "span", {}, ...visible(text));
  if (style?.startsWith("#")) [made.style.color, made.style.backgroundColor = ""] = style.split(" on ");
  return made;
}

function headOf(row, close) {
  const back = make("button.back", { type: "button", title: "Esc" }, "Close");
  back.addEventListener("click", close);
  const title = [...visible(row.method), " ", make("span.subject", {}, ...visible(row.subject))];
  const status = row.status ? make(`span.badge.${row.tone}`, {}, ...visible(row.status)) : "";
  return make("div.bar.title", {}, make("div.bar", {}, make("h2", {}, ...title), status), back);
}

function factsOf(row) {
  const when = clock(session.facts.started, row.at);
  const facts = [`#${row.number}`, `${moment(row.at)} s`, when];
  if (row.latency !== null) facts.push(`latency ${duration(row.latency)}`);
  if (row.id) facts.push(`id ${row.id}`);
  if (row.http !== null) facts.push(`HTTP exchange ${row.http}`);
  if (row.stream) facts.push(`stream ${row.stream}`);
  return facts.filter(Boolean).join(" · ");
}

function flawsOf(row) {
  if (!row.flaws.length) return null;
  return make("ul.flaws", { "aria-label": "Protocol issues" }, ...row.flaws.map((flaw) => make("li", {}, ...visible(flaw))));
}

function linkTo(row, words) {
  const link = make("a", { href: session.address(row) }, words);
  link.dataset.number = row.number;
  return link;
}

function linksOf(row) {
  const links = [];
  const request = session.requestOf(row);
  const [before, after, page, call] = [session.before(row), session.after(row), session.page(row), session.call(row)];
  if (request) links.push(linkTo(request, `part of #${request.number} ${request.method}`));
  if (before) links.push(linkTo(before, `retry of #${before.number} with input`));
  if (after) links.push(linkTo(after, `continues in #${after.number}`));
  if (page) links.push(linkTo(page, `page of the app in #${page.number}`));
  if (call) links.push(linkTo(call, `first call with this page in #${call.number}`));
  return links.length ? make("p.links", {}, ...links) : null;
}

function sidesOf(row, words) {
  const isNote = !row.side;
  const other = row.side === "client" ? "server" : "client";
  const name = { request: "Request", notification: "Notification", result: "Response", error: "Response" }[row.kind] ?? "Raw text";
  const sides = [side(name, row.body, row.size, isNote ? "" : row.side, words)];
  if (row.answer >= 0) sides.push(side("Response", row.answer, row.answerSize, other, words));
  else if (row.kind === "request") sides.push(make("article.side", {}, make("h3", {}, "Response"), make("p.aside", {}, missing(row))));
  return sides;
}

function missing(row) {
  const waited = duration(Math.max(row.last - row.at, 0));
  return row.tone === "open" ? `No response for ${waited}: ${row.status}.` : `No response: ${row.status}.`;
}

function side(name, body, bytes, from, words) {
  const text = session.body(body);
  const json = isJson(text);
  const box = make("div.body", { tabIndex: 0, role: "group", ariaLabel: `${name}, body` });
  const fill = (lines) => box.replaceChildren(json ? layOut(text, words, lines) : plainText(text, words));
  fill();
  const copy = button("Copy", "Copy the original text", () => copyText(text, copy));
  const tools = [copy];
  if (json && text.length > 200) {
    const all = button("Unfold", "Unfold as much as the browser can handle", () => {
      const isAll = all.textContent === "Unfold";
      fill(isAll ? LINES * 20 : LINES);
      all.textContent = isAll ? "Fold" : "Unfold";
    });
    tools.push(all);
  }
  const about = `${commas(bytes)} bytes${json || !from ? "" : ", not JSON"}`;
  const way = from === "client" ? [", client ", arrow("client"), " server"] : from ? [", server ", arrow("client"), " client"] : [];
  const head = make("div.bar", {}, make("h3", {}, name), make("span.aside", {}, about, ...way), make("span.room"), ...tools);
  const views = make("div.views", {});
  views.dataset.body = body;
  return make(`article.side${from ? `.from-${from}` : ""}`, { "aria-label": name }, head, views, box);
}

function alongOf(row) {
  const along = session.along(row);
  if (!along.length) return null;
  const isRequest = row.kind === "request";
  const textOf = (each) => (isRequest ? `${each.method} ${each.subject}` : `${each.subject}, ${each.status}`);
  const items = along.slice(0, PAGE).map((each) => make("li", {}, linkTo(each, `${moment(each.at)} s`), " ", ...visible(textOf(each))));
  const rest = along.length > PAGE ? [make("li", {}, `and ${commas(along.length - PAGE)} more`)] : [];
  return make("section.along", {}, make("h3", {}, isRequest ? "Notifications" : "Steps"), make("ul", {}, ...items, ...rest));
}

function httpOf(row, words) {
  const carriers = session.carriers(row);
  if (!carriers.length) return null;
  const each = carriers.map((note) => {
    const summary = make("summary", {}, ...visible(`${note.method}: ${note.subject} ${note.status}`));
    return make("details", {}, summary, make("div.body", {}, layOut(session.body(note.body), words)));
  });
  return make("section.http", {}, make("h3", {}, "HTTP"), ...each);
}

function button(text, title, act) {
  const made = make("button", { type: "button", title }, text);
  made.addEventListener("click", act);
  return made;
}

/** Copy a text to the clipboard, with the old API if the new one is not allowed; announce the result. */
async function copyText(text, from) {
  let done = true;
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const field = make("textarea", { value: text, className: "unseen" });
    document.body.append(field);
    field.select();
    done = document.execCommand("copy");
    field.remove();
    from?.focus();
  }
  announce(done ? "copied" : "the browser does not allow this page to copy");
  if (!from) return;
  from.textContent = done ? "Copied" : "Not allowed";
  setTimeout(() => (from.textContent = "Copy"), 1500);
}
