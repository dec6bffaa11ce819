// The page: shows the place that the address names, and goes to others.
// Owns the place, the rows, and the row that is open.

const ORDERS = { at: "time", took: "latency", sizes: "size" };

let place = START;
let rows = null;
let openRow = null;
let chosenRow = null;

const events = new Events(news, (isConnected) => (byId("connection").hidden = isConnected));
const lists = {
  sessions: new SessionTable(byId("sessions"), { opened: (key) => go({ key }), compared: (key, other) => go({ key, view: "diff", other }) }),
  runs: new RunTable(byId("runs"), (key) => go({ key })),
};
const tracks = new TimelineView(byId("overtime"), {
  opened: (number) => go({ view: "messages", number, span: "" }),
  moved: (ends) => go({ span: ends === null ? "" : ends.map((at) => String(Number(at.toPrecision(9)))).join("_") }, true),
  load: (parts) => {
    const [begin, end] = place.span.split("_");
    return guard(() => fetchJson(`s/${encodeURIComponent(place.key)}/timeline`, { begin, end, parts, q: queryText() }));
  },
});
const listing = new Listing(byId("rows"), {
  chosen: (row, at) => choose(row, at),
  opened: (row, at) => choose(row, at, true),
  sorted: sort,
  sorts: (name) => name in ORDERS,
});

/** Go to another place: of its own history entry, unless only the row or the filter differs. */
function go(changes, isSmall = false) {
  const before = place;
  const from = "key" in changes ? { ...START, home: homeOf(place) } : place;
  place = { ...from, ...changes };
  if (isSmall) history.replaceState(null, "", addressOf(place));
  else if (addressOf(place) !== addressOf(before)) history.pushState(null, "", addressOf(place));
  render(before);
}

/** Return the list to which a place belongs. */
function homeOf({ home, key }) {
  return key === null ? home : key.startsWith(RUN) ? "runs" : "sessions";
}

function list() {
  return lists[place.home];
}

/** Show the place. */
function render(before = null) {
  const { key, view } = place;
  const isList = key === null;
  const isRun = !isList && key.startsWith(RUN);
  const isReport = !isList && view in VIEWS && VIEWS[view].show !== undefined;
  for (const [name, { element }] of Object.entries(lists)) element.hidden = !isList || name !== place.home;
  byId("panes").hidden = isList || view !== "messages";
  byId("overtime").hidden = isList || view !== "timeline";
  byId("report").hidden = !isReport;
  byId("home").hidden = byId("ending").hidden = isList;
  byId("home").textContent = isRun ? "Runs" : "Sessions";
  byId("home").href = addressOf({ ...START, home: homeOf(place) });
  byId("find").hidden = isList ? place.home === "runs" : isReport && (view !== "stats" || isRun);
  byId("chips").hidden = isList || isReport;
  byId("query").placeholder = isList ? "Filter: words, server:weather, errors>0, since:2h" : "Filter: tool:echo, is:error, >200ms, text:words";
  if (byId("query").value !== place.q) byId("query").value = place.q;
  for (const chip of byId("chips").children) chip.setAttribute("aria-pressed", String(place.show.includes(chip.dataset.name)));
  for (const tab of byId("tabs").children) {
    const { home, view: shown } = tab.dataset;
    tab.hidden = isList ? !home : Boolean(home) || (isRun && !VIEWS[shown].ofRuns) || (shown === "diff" && view !== "diff");
    tab.setAttribute("aria-current", (isList ? home === place.home : shown === view) ? "page" : "false");
  }
  if (before === null || before.key !== key || before.home !== place.home) begin();
  events.listen(key);
  if (isList) return showList();
  if (isReport) return showReport();
  if (view === "timeline") return tracks.refresh();
  const isSame = before !== null && ["key", "q", "order", "view"].every((name) => before[name] === place[name]) && before.show.join() === place.show.join();
  if (!isSame || rows === null) filter();
  if (place.number !== null && place.number !== openRow?.number) openNumber(place.number, before === null || before.key !== key);
  else if (place.number === null) conceal();
}

/** Forget the session that was shown. */
function begin() {
  conceal();
  rows = chosenRow = null;
  Object.assign(session, { key: place.key, facts: { started: "", lasted: 0 }, open: null });
  byId("facts").replaceChildren();
  byId("target").textContent = byId("found").textContent = "";
  byId("warning").hidden = true;
  control.show(null);
  byId("name").textContent = place.key === null ? "mcpspy" : "…";
  byId("ending").textContent = "";
  document.title = "mcpspy";
  listing.show([], [], [0, 0]);
  tracks.clear();
}

async function showList() {
  const { home, q } = place;
  await guard(async () => {
    const found = await fetchJson(home, { q });
    if (place.key !== null || place.home !== home) return;
    list().showFound(found);
    byId("found").textContent = plural(found.total, home.slice(0, -1));
    if (document.activeElement === document.body) list().focus();
  });
}

/** Return the filter of the search box and the chips together, in the filter language. */
function queryText() {
  const chosen = CHIPS.filter(([name]) => place.show.includes(name)).map(([, text]) => text);
  if (!chosen.length) return place.q;
  return [place.q.trim() && `(${place.q})`, `(${chosen.join(" or ")})`].filter(Boolean).join(" ");
}

function filter() {
  const parameters = { q: queryText(), order: place.order, http: place.show.includes("HTTP") ? "1" : "" };
  rows = new RemoteRows(place.key, parameters, { loaded, failed });
  rows.wanted = openRow?.number ?? place.number;
  rows.refresh();
}

/** Show rows that have arrived; the list follows its end if it is there, as the terminal UI does. */
async function loaded(from, answer) {
  if (from !== rows) return;
  const box = byId("rows");
  const isAtEnd = box.scrollTop + box.clientHeight >= box.scrollHeight - listing.height / 2;
  const isLive = session.facts.state === "live";
  if (listing.rows !== rows) listing.show(rows, wordsToMark(place.q), [0, session.facts.lasted]);
  else {
    listing.range = [0, session.facts.lasted];
    listing.measure();
  }
  if (isLive && isAtEnd && place.order === "time" && (listing.cursor < 0 || listing.cursor === rows.end)) box.scrollTop = box.scrollHeight;
  rows.end = rows.length - 1;
  if (place.order !== "time" && !place.order.startsWith(answer.order)) {
    announce("too many rows to sort: filter first");
    return go({ order: "time" }, true);
  }
  const [name, isDown] = [Object.keys(ORDERS).find((each) => ORDERS[each] === answer.order), place.order.endsWith("-reverse") === (answer.order === "time")];
  listing.markSort(place.order === "time" ? undefined : name, isDown);
  const query = byId("query");
  query.setAttribute("aria-invalid", "false");
  byId("found").classList.remove("bad");
  const isFiltered = queryText() !== "";
  byId("found").textContent = isFiltered ? `${rows.length.toLocaleString("en")} of ${plural(rows.unfiltered, "row")}${answer.behind ? " …" : ""}` : plural(rows.length, "row");
  byId("nothing").hidden = rows.length > 0;
  byId("nothing").textContent = isFiltered ? "No matching rows. Press Esc in the filter to clear it." : "Nothing was recorded yet.";
  if (rows.wanted) {
    const number = rows.wanted;
    rows.wanted = null;
    const found = await guard(() => fetchJson(`s/${encodeURIComponent(place.key)}/place`, { ...rows.parameters, number }));
    if (from === rows && found) listing.go(found.place ?? -1);
  }
}

function failed(from, error) {
  if (from !== rows) return;
  if (error.status === 401) return askToken();
  byId("found").textContent = error.message;
  byId("found").classList.add("bad");
  byId("query").setAttribute("aria-invalid", "true");
}

/** Run a request; show its error. */
async function guard(work) {
  try {
    return await work();
  } catch (error) {
    if (error.status === 401) askToken();
    else if (error instanceof ServerError) {
      byId("found").textContent = error.message;
      byId("found").classList.add("bad");
    } else byId("connection").hidden = false;
  }
  return null;
}

/** Take an event of the server: the list, or the facts of the session. */
function news(key, facts) {
  if (key !== place.key) return;
  if (key === null) return showList();
  const isFirst = !session.facts.name;
  session.facts = facts;
  showFacts();
  if (isFirst) listing.measure(); // The rows of a run have one more column.
  control.show(facts.control);
  if (isFirst && openRow) refreshMessage(byId("detail"), openRow);
  if (place.view === "timeline") return refreshTracks();
  if (place.view !== "messages") return;
  rows?.refresh();
  if (openRow?.tone === "open" || (openRow && session.open.along.length)) reload();
}

let tracksWait = 0;

/** Load the timeline again, at most once per second: a live session has news more often. */
function refreshTracks() {
  tracksWait ||= setTimeout(() => {
    tracksWait = 0;
    if (place.view === "timeline") tracks.refresh();
  }, 1000);
}

function showFacts() {
  const { facts } = session;
  byId("list").classList.toggle("merged", facts.tracks.length > 0);
  listing.addColumns(facts.columns);
  byId("name").textContent = facts.name;
  document.title = `${facts.name} - mcpspy`;
  byId("target").textContent = facts.target;
  const ending = byId("ending");
  const hasFailed = facts.state === "died" || (facts.ending && facts.ending !== "exit 0");
  ending.className = `badge ${hasFailed ? "bad" : facts.state === "live" ? "ok" : "quiet"}`;
  ending.textContent = facts.ending || facts.state;
  const contents = countedWords(plural(facts.messages, "message"), [[facts.errors, "failed"], [facts.unanswered, "unanswered"], [facts.pending, "pending"], [facts.issues, "protocol issues"], [facts.injected, "injected"]]);
  const sessions = facts.sessions?.flatMap((each, i) => [i ? ", " : "", linkToSession(each.key, each.name)]);
  fillFacts(facts, contents, [sessions ? ["sessions", sessions] : ["session", facts.id]]);
  const words = [];
  if (facts.read < 1) words.push(`Reading the file: ${Math.floor(facts.read * 100)} %.`);
  if (facts.trouble) words.push(facts.trouble);
  if (!facts.redacted) words.push("Recorded without redaction: it contains the secrets that were sent.");
  byId("warning").textContent = words.join(" ");
  byId("warning").hidden = !words.length;
}

/** Make a row the current one; open it if `opens`, or if another is open. A row that is not loaded becomes current. */
function choose(row, at, opens = false) {
  listing.go(at);
  if (row && (opens || openRow)) openNumber(row.number);
}

async function openNumber(number, isFirst = false) {
  const { key } = place;
  if (place.number !== number) go({ number }, openRow !== null || isFirst);
  const found = await guard(() => session.load(number));
  if (!found || place.key !== key || place.number !== number) return;
  const wasClosed = openRow === null;
  byId("detail").hidden = false;
  document.body.classList.add("reading");
  showRow(found);
  markHits(wordsToMark(place.q));
  if (!wasClosed) return;
  listing.measure();
  if (listing.cursor < 0 && rows?.length) rows.wanted = number; // A link named it: the list goes there.
  listing.reveal();
}

/** Show the open row again: its request was answered meanwhile. */
async function reload() {
  const { number } = openRow;
  const found = await guard(() => session.load(number));
  if (found && openRow?.number === number && found.row.state !== openRow.state) showRow(found);
}

function showRow({ row, open }) {
  openRow = row;
  session.open = open;
  showMessage(byId("detail"), row, wordsToMark(place.q), close);
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

async function seek(step) {
  const found = await guard(() => fetchJson(`s/${encodeURIComponent(place.key)}/place`, { ...rows.parameters, from: listing.cursor < 0 && step < 0 ? rows.length : listing.cursor, step }));
  if (!found) return;
  if (found.place === null) return announce("no more errors");
  listing.go(found.place);
  if (openRow) openNumber(found.number);
}

/** Sort by a column: the largest first for numbers, then in reverse, then by time again. */
function sort(name) {
  const order = ORDERS[name];
  const cycle = order === "time" ? ["time", "time-reverse"] : [order, `${order}-reverse`, "time"];
  go({ order: cycle[(cycle.indexOf(place.order) + 1) % cycle.length] }, true);
}

async function showReport() {
  const { key, view, other, old, now, q } = place;
  const report = byId("report");
  report.replaceChildren(make("p.aside", {}, "Reading the session …"));
  const found = await guard(() => fetchJson(`s/${encodeURIComponent(key)}/${view}`, { with: other, old, new: now, q: view === "stats" ? q : "" }));
  if (place.key !== key || place.view !== view || place.q !== q) return;
  report.replaceChildren(...(found ? VIEWS[view].show(found) : [make("p.bad", {}, byId("found").textContent)]));
  if (found) byId("found").textContent = "";
  report.focus();
}

/** Choose a row for a comparison, or compare the chosen one with this. */
function compareRow() {
  const row = rows?.at(listing.cursor);
  if (!row || row.exchange === null) return announce("select a request");
  if (chosenRow === null || chosenRow === row.number) {
    chosenRow = chosenRow === null ? row.number : null;
    return announce(chosenRow === null ? "no request chosen" : `compare #${chosenRow}: press d on another request`);
  }
  const old = String(chosenRow);
  chosenRow = null;
  go({ view: "diff", old, now: String(row.number), number: null, other: "" });
}

/** Show a view of the session; in a list, the other list of this name if there is one. */
function show(view, home = place.home) {
  if (place.key === null) go({ home });
  else if (VIEWS[view].ofRuns || !place.key.startsWith(RUN)) go({ view, other: "", old: "", now: "", span: "", number: null });
}

/** Ask for the token: this browser has no cookie, or that of an earlier run of the server. */
function askToken() {
  const dialog = byId("login");
  if (dialog.open) return;
  events.stop();
  const field = make("input", { type: "text", id: "token", ariaLabel: "Address", autocomplete: "off", spellcheck: false });
  const wrong = make("p.bad", {});
  const form = make("form", { method: "dialog" }, field, make("button", { type: "submit" }, "Open"));
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (await signIn(field.value.trim().replace(/^.*#/, ""))) {
      dialog.close();
      render();
    } else wrong.textContent = "The server does not accept it.";
  });
  dialog.replaceChildren(make("h2", {}, "This browser is not signed in"), make("p", {}, "Paste the address that mcpspy web printed. Each start of mcpspy web has a new one."), form, wrong);
  dialog.showModal();
}

function search() {
  const q = byId("query").value;
  if (q !== place.q) go({ q }, true);
}
