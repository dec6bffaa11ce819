// The page of a session: its rows by filter, the message that is open, and its timeline.
// Owns the place, the rows, and the open row. All of it is asked of `source`, of which there are two: the file itself
// (`offline.js`), and the server of `mcpspy web` (`server.js`).

const NUMERIC = ["latency", "size"]; // Orders whose largest values are first.

let place = START;
let rows = null;
let openRow = null;

/** What the parts of the page need of the session, and of the row that is open. */
const session = {
  facts: { started: "", lasted: 0 },
  open: null,
  body: (number) => session.open.bodies[number] ?? "",
  address: (row) => source.addressOf({ ...place, number: row.number }),
  requestOf: () => session.open.related.request,
  before: () => session.open.related.before,
  after: () => session.open.related.after,
  page: () => session.open.related.page,
  call: () => session.open.related.call,
  along: () => session.open.along,
  carriers: () => session.open.carriers,
  views: (row, show) => source.views(row, show),
};

const tracks = new TimelineView(byId("overtime"), {
  selected: (number) => source.hasStrip && chooseNumber(number),
  opened: (number) => go({ view: "messages", number, ...(source.hasStrip ? {} : { span: "" }) }),
  moved: (ends) => go({ span: ends === null ? "" : ends.map((at) => String(Number(at.toPrecision(9)))).join("_") }, true),
  load: (parts) => source.timeline(parts),
});

const listing = new Listing(byId("rows"), {
  chosen: (row, at) => choose(row, at),
  opened: (row, at) => choose(row, at, true),
  sorted: sort,
  sorts: (order) => source.orders.includes(order),
});

/** Go to another place: of its own history entry, unless only the row or the filter differs. */
function go(changes, isSmall = false) {
  const before = place;
  place = { ...place, ...changes };
  const [old, address] = [before, place].map((each) => source.addressOf(each));
  try {
    if (isSmall) history.replaceState(null, "", address);
    else if (address !== old) history.pushState(null, "", address);
  } catch {
    // A page without its own address has no links either.
  }
  return render(before);
}

/** Show the place; resolve when a message that it names is open. */
function render(before = null) {
  const { key, view, number } = place;
  const isSession = key !== null;
  const isStrip = isSession && view === "messages" && source.hasStrip;
  byId("panes").hidden = !isSession || view !== "messages";
  byId("overtime").hidden = !isStrip && (!isSession || view !== "timeline");
  tracks.isCompact = isStrip;
  if (byId("query").value !== place.q) byId("query").value = place.q;
  for (const chip of byId("chips").children) chip.setAttribute("aria-pressed", String(place.show.includes(chip.dataset.name)));
  for (const tab of byId("tabs").children) tab.setAttribute("aria-current", tab.dataset.view === view ? "page" : "false");
  if (before === null || before.key !== key || before.home !== place.home) begin();
  if (source.render(before)) return;
  if (number === null) conceal();
  const isSame =
    before !== null &&
    ["key", "q", "order", "view", "span"].every((name) => before[name] === place[name]) &&
    before.show.join() === place.show.join();
  if ((view === "messages" || source.hasStrip) && (!isSame || rows === null)) filter();
  if (view === "timeline") tracks.refresh();
  else if (number !== null && number !== openRow?.number) return openNumber(number, before === null || before.key !== key);
}

/** Forget the session that was shown. */
function begin() {
  conceal();
  rows = null;
  listing.show([], [], [0, 0]);
  tracks.clear();
  source.begin?.();
}

function filter() {
  const http = place.show.includes("HTTP") ? "1" : "";
  rows = source.rows({ q: queryText(), order: place.order, http }, { loaded, failed });
  rows.wanted = openRow?.number ?? place.number;
  rows.refresh();
  if (openRow) showRow({ row: openRow, open: session.open });
}

/** Show rows that have arrived; the list follows its end if it is there, as the terminal UI does. */
async function loaded(from, answer) {
  if (from !== rows) return;
  const box = byId("rows");
  const isAtEnd = box.scrollTop + box.clientHeight >= box.scrollHeight - listing.height / 2;
  const range = (source.hasStrip && spanOf()) || [0, session.facts.lasted];
  if (listing.rows !== rows) listing.show(rows, wordsToMark(place.q), range);
  else {
    listing.range = range;
    listing.measure();
  }
  if (session.facts.state === "live" && isAtEnd && place.order === "time" && (listing.cursor < 0 || listing.cursor === rows.end))
    box.scrollTop = box.scrollHeight;
  rows.end = rows.length - 1;
  if (source.hasStrip) tracks.refresh();
  if (place.order !== "time" && !place.order.startsWith(answer.order)) {
    announce("too many rows to sort: filter first");
    return go({ order: "time" }, true);
  }
  listing.markSort(place.order === "time" ? undefined : answer.order, place.order.endsWith("-reverse") !== NUMERIC.includes(answer.order));
  const query = byId("query");
  query.setAttribute("aria-invalid", "false");
  byId("found").classList.remove("bad");
  const isFiltered = queryText() !== "" || (source.hasStrip && place.span !== "");
  byId("found").textContent = isFiltered
    ? `${commas(rows.length)} of ${plural(rows.unfiltered, "row")}${answer.behind ? " …" : ""}`
    : plural(rows.length, "row");
  byId("nothing").hidden = rows.length > 0;
  byId("nothing").textContent = isFiltered
    ? `No matching rows${answer.hint ? `: ${answer.hint}` : ""}. Words look at methods and subjects; text:WORD looks into the messages. Press Esc in the filter to clear it.`
    : source.nothing;
  if (rows.wanted) {
    const number = rows.wanted;
    rows.wanted = null;
    await goToPlace(number);
  }
}

function failed(from, error) {
  if (from === rows && source.explains(error)) byId("query").setAttribute("aria-invalid", "true");
}

/** Show an error in place of the number of rows. */
function explain(words) {
  byId("found").textContent = words;
  byId("found").classList.add("bad");
}

function showFacts(facts) {
  session.facts = facts;
  byId("list").classList.toggle("merged", facts.tracks?.length > 0);
  listing.addColumns(facts.columns);
  byId("name").textContent = facts.name;
  byId("target").textContent = facts.target;
  const ending = byId("ending");
  ending.className = `badge ${facts.endingTone}`;
  ending.textContent = facts.ending || facts.state || "no end recorded";
  if (!facts.ending && !facts.state) ending.title = "The session was still running, or mcpspy stopped before the server.";
  const words =
    facts.requests === undefined
      ? plural(facts.messages, "message")
      : `${plural(facts.messages, "message")}, ${plural(facts.requests, "request")}`;
  const contents = countedWords(words, [
    [facts.errors, "failed"],
    [facts.unanswered, "unanswered"],
    [facts.pending, "pending"],
    [facts.issues, "protocol issues"],
    [facts.injected, "injected"],
  ]);
  fillFacts(facts, contents, [
    ["cause", facts.cause],
    ["context", facts.context],
    ["directory", facts.cwd],
    facts.sessions ? ["sessions", source.linksTo(facts.sessions)] : ["session", facts.id],
  ]);
  const warnings = [
    ...source.warnings(facts),
    facts.redacted !== true && "Recorded without redaction: this page contains the secrets that were sent.",
  ].filter(Boolean);
  byId("warning").textContent = warnings.join(" ");
  byId("warning").hidden = !warnings.length;
}

/** Make a row the current one; open it if `opens`, or if another is open. A row that is not loaded becomes current. */
function choose(row, at, opens = false) {
  listing.go(at);
  if (row) tracks.select(row);
  if (row && (opens || openRow)) openNumber(row.number);
}

async function chooseNumber(number) {
  const at = await source.placeIn(rows, number);
  if (at !== null) choose(rows.at(at), at);
}

/** Make the row of a message the current one: a link or the history named it. `other` is the place without such a row. */
async function goToPlace(number, other = -1) {
  const from = rows;
  const at = await source.placeIn(from, number);
  if (from === rows) listing.go(at ?? other);
}

/** Open a row by its number; go to its place first. */
async function openNumber(number, isFirst = false) {
  const { key } = place;
  if (place.number !== number) return go({ number }, openRow !== null || isFirst);
  const found = await source.load(number);
  if (!found || place.key !== key || place.number !== number) return;
  const wasClosed = openRow === null;
  byId("detail").hidden = false;
  document.body.classList.add("reading");
  showRow(found);
  if (hits.length && hits[0].getBoundingClientRect().top > byId("detail").getBoundingClientRect().bottom) nextHit(1);
  if (wasClosed) listing.measure();
  if (listing.rows === rows && listing.current?.number !== number) goToPlace(number, listing.cursor);
  else listing.reveal();
}

function showRow({ row, open }) {
  openRow = row;
  session.open = open;
  tracks.select(row);
  showMessage(byId("detail"), row, wordsToMark(place.q), close);
  markHits(wordsToMark(place.q));
}

function close() {
  go({ number: null }, true);
  byId("rows").focus();
}

function conceal() {
  if (openRow === null) return;
  openRow = session.open = null;
  byId("detail").hidden = true;
  byId("detail").replaceChildren();
  document.body.classList.remove("reading");
  markHits(wordsToMark(place.q));
  listing.measure();
  listing.reveal();
}

/** Go to the next error, or to the one before. */
async function seek(step) {
  if (!rows) return;
  const found = await source.seek(rows, listing.cursor < 0 && step < 0 ? rows.length : listing.cursor, step);
  if (!found) return;
  if (found.place === null) return announce("no more errors");
  const row = rows.at(found.place);
  if (row) return choose(row, found.place);
  listing.go(found.place);
  if (openRow) openNumber(found.number);
}

/** Sort by a column: the largest first for numbers, then in reverse, then by time again. */
function sort(order) {
  const cycle = order === "time" ? ["time", "time-reverse"] : [order, `${order}-reverse`, "time"];
  go({ order: cycle[(cycle.indexOf(place.order) + 1) % cycle.length] }, true);
}

function search() {
  const q = byId("query").value;
  if (q !== place.q) go({ q }, true);
}
