// The page: sessions, the rows of a session, reports, and keys.
// Owns the place that the address names: session, row, filter and view.

const CHIPS = [
  ["errors", "is:error or is:unanswered", "bad"],
  ["slow", "is:slow", "open"],
  ["pending", "is:pending", "open"],
  ["protocol issues", "is:issue", "issue"],
  ["notifications", "is:notification", "quiet"],
  ["stderr", "is:stderr", "quiet"],
  ["HTTP", "note:http or note:http-end or note:sse", "quiet"],
];

const VIEWS = {
  messages: { title: "Messages", key: "1" },
  stats: { title: "Statistics", key: "2", show: statsView },
  capabilities: { title: "Capabilities", key: "3", show: capabilitiesView },
  findings: { title: "Findings", key: "4", show: findingsView },
  diff: { title: "Differences", key: "5", show: diffView },
};

const ORDERS = { at: "time", took: "latency", sizes: "size" };

let place = { key: null, number: null, q: "", show: [], view: "messages", order: "time", other: "", old: "", now: "" };
let rows = null;
let openRow = null;
let chosenRow = null;

const events = new Events(news, (isConnected) => (byId("connection").hidden = isConnected));
const sessionTable = new SessionTable(byId("sessions"), { opened: (key) => go({ key }), compared: (key, other) => go({ key, view: "diff", other }) });
const listing = new Listing(byId("rows"), {
  chosen: (row, at) => choose(row, at),
  opened: (row, at) => choose(row, at, true),
  sorted: sort,
  sorts: (name) => name in ORDERS,
});

/** Return the address of a place. */
function addressOf({ key, number, q, show, view, order, other, old, now }) {
  const path = key === null ? "/" : `/s/${encodeURIComponent(key)}${number === null ? "" : `/${number}`}`;
  const named = { q, show: show.join(","), view: view === "messages" ? "" : view, order: order === "time" ? "" : order, with: other, old, new: now };
  const text = new URLSearchParams(Object.entries(named).filter(([, value]) => value !== "")).toString();
  return text ? `${path}?${text}` : path;
}

function placeOf(location) {
  const [, , key, number] = location.pathname.split("/");
  const given = new URLSearchParams(location.search);
  const view = given.get("view");
  return {
    key: key ? decodeURIComponent(key) : null,
    number: Number(number) || null,
    q: given.get("q") ?? "",
    show: (given.get("show") ?? "").split(",").filter((name) => CHIPS.some((chip) => chip[0] === name)),
    view: view in VIEWS ? view : "messages",
    order: given.get("order") ?? "time",
    other: given.get("with") ?? "",
    old: given.get("old") ?? "",
    now: given.get("new") ?? "",
  };
}

/** Go to another place: of its own history entry, unless only the row or the filter differs. */
function go(changes, isSmall = false) {
  const before = place;
  const from = "key" in changes ? { ...place, number: null, q: "", show: [], view: "messages", order: "time", other: "", old: "", now: "" } : place;
  place = { ...from, ...changes };
  if (isSmall) history.replaceState(null, "", addressOf(place));
  else if (addressOf(place) !== addressOf(before)) history.pushState(null, "", addressOf(place));
  render(before);
}

/** Show the place. */
function render(before = null) {
  const { key, view } = place;
  const isSession = key !== null;
  const isReport = isSession && view !== "messages";
  byId("sessions").hidden = isSession;
  byId("panes").hidden = !isSession || isReport;
  byId("report").hidden = !isReport;
  byId("tabs").hidden = byId("home").hidden = byId("ending").hidden = !isSession;
  byId("find").hidden = isReport && view !== "stats";
  byId("chips").hidden = !isSession || isReport;
  byId("query").placeholder = isSession ? "Filter: tool:echo, is:error, >200ms, text:words" : "Filter: words, server:weather, errors>0, since:2h";
  if (byId("query").value !== place.q) byId("query").value = place.q;
  for (const chip of byId("chips").children) chip.setAttribute("aria-pressed", String(place.show.includes(chip.dataset.name)));
  for (const tab of byId("tabs").children) {
    tab.hidden = tab.dataset.view === "diff" && view !== "diff";
    tab.setAttribute("aria-current", tab.dataset.view === view ? "page" : "false");
  }
  if (before === null || before.key !== key) begin();
  events.listen(key);
  if (!isSession) return showSessions();
  if (isReport) return showReport();
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
}

async function showSessions() {
  await guard(async () => {
    const found = await fetchJson("sessions", { q: place.q });
    if (place.key !== null) return;
    sessionTable.show(found);
    byId("found").textContent = plural(found.total, "session");
    if (document.activeElement === document.body) sessionTable.focus();
  });
}

/** Return the filter of the search box and the chips together, in the filter language. */
function queryText() {
  const chosen = CHIPS.filter(([name]) => place.show.includes(name)).map(([, text]) => text);
  if (!chosen.length) return place.q;
  return [place.q.trim() && `(${place.q})`, `(${chosen.join(" or ")})`].filter(Boolean).join(" ");
}

/** Return the words of the filter that may occur in a message, to highlight them. */
function filterWords() {
  const words = place.q.match(/(?:[-!]?\w+:)?"[^"]*"|[^\s()]+/g) ?? [];
  const plain = words.map((word) => word.replace(/^text:/, ""));
  return wordsOf(plain.filter((word) => word.startsWith('"') || !/^[-!]|[:<>=]|^\/|^(and|or|not)$/i.test(word)).join(" "));
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
  if (listing.rows !== rows) listing.show(rows, filterWords(), [0, session.facts.lasted]);
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
  if (key === null) return showSessions();
  const isFirst = !session.facts.name;
  session.facts = facts;
  showFacts();
  control.show(facts.control);
  if (isFirst && openRow) showMessage(byId("detail"), openRow, filterWords(), close); // Now with the time of day.
  if (place.view !== "messages") return;
  rows?.refresh();
  if (openRow?.state === "pending" || (openRow && session.open.along.length)) reload();
}

function showFacts() {
  const { facts } = session;
  byId("name").textContent = facts.name;
  document.title = `${facts.name} - mcpspy`;
  byId("target").textContent = facts.target;
  const ending = byId("ending");
  const hasFailed = facts.state === "died" || (facts.ending && facts.ending !== "exit 0");
  ending.className = `badge ${hasFailed ? "bad" : facts.state === "live" ? "ok" : "quiet"}`;
  ending.textContent = facts.ending || facts.state;
  const counted = [[facts.errors, "failed"], [facts.issues, "protocol issues"], [facts.state === "live" ? facts.pending : facts.unanswered, facts.state === "live" ? "pending" : "without a response"]];
  const outcomes = counted.filter(([count]) => count).map(([count, words]) => `${count.toLocaleString("en")} ${words}`);
  const pairs = [
    ["server", facts.server],
    ["client", facts.client],
    ["protocol", facts.revision],
    ["transport", facts.transport],
    ["started", clock(facts.started, 0).replace(/\.\d+/, "") || facts.started],
    ["duration", duration(facts.lasted)],
    ["contents", plural(facts.messages, "message") + (outcomes.length ? ` (${outcomes.join(", ")})` : "")],
    ["session", facts.id],
  ];
  byId("facts").replaceChildren(...pairs.filter(([, value]) => value).map(([name, value]) => make(`div.${name}`, {}, make("dt", {}, name), make("dd", {}, ...visible(value)))));
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
  const row = await guard(() => session.load(number));
  if (!row || place.key !== key || place.number !== number) return;
  const wasClosed = openRow === null;
  openRow = row;
  byId("detail").hidden = false;
  document.body.classList.add("reading");
  showMessage(byId("detail"), row, filterWords(), close);
  markHits(filterWords());
  if (!wasClosed) return;
  listing.measure();
  if (listing.cursor < 0 && rows?.length) rows.wanted = number; // A link named it: the list goes there.
  listing.reveal();
}

/** Show the open row again: its request was answered meanwhile. */
async function reload() {
  const { number } = openRow;
  const row = await guard(() => session.load(number));
  if (!row || openRow?.number !== number || row.state === openRow.state) return;
  openRow = row;
  showMessage(byId("detail"), row, filterWords(), close);
}

function close() {
  go({ number: null }, true);
  byId("rows").focus();
}

function conceal() {
  if (openRow === null) return;
  openRow = null;
  byId("detail").hidden = true;
  byId("detail").replaceChildren();
  document.body.classList.remove("reading");
  markHits(filterWords());
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

function show(view) {
  if (place.key !== null) go({ view, other: "", old: "", now: "", number: null });
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

const KEYS = [
  ["/", "filter: the language of the terminal UI (docs/filter.md)", () => byId("query").select()],
  ["j", "next row or session; arrows, Page Down and End work in the list", () => move(1)],
  ["k", "previous row or session", () => move(-1)],
  ["Enter", "open; in the filter, go to the first match", null],
  ["Esc", "close the message or the report; in the filter, clear it", null],
  ["g", "first row", () => move(-Infinity)],
  ["G", "last row; the list of a live session then follows", () => move(Infinity)],
  ["e", "next error", () => rows && seek(1)],
  ["E", "previous error", () => rows && seek(-1)],
  ["n", "next word of the filter in the message", () => nextHit(1)],
  ["N", "previous word of the filter", () => nextHit(-1)],
  ["i", "hold the messages that match the filter, or stop (--allow-control)", () => control.toggle()],
  ["r", "send the open request again, with changes (--allow-control)", () => control.resend()],
  ["d", "compare: press d on one session or request, then on another", () => (place.key === null ? sessionTable.choose() : compareRow())],
  ["1", "messages", () => show("messages")],
  ["2", "statistics", () => show("stats")],
  ["3", "capabilities", () => show("capabilities")],
  ["4", "lint findings", () => show("findings")],
  ["q", "all sessions", () => go({ key: null })],
  ["y", "copy the request, or the message", () => openRow && copyText(session.body(openRow.body))],
  ["Y", "copy the response", () => openRow?.answer >= 0 && copyText(session.body(openRow.answer))],
  ["t", "theme", () => byId("theme").click()],
  ["?", "show these keys", () => showKeys(KEYS)],
];

function move(by) {
  if (place.key === null) sessionTable.focus(by);
  else if (place.view === "messages") listing.move(by);
}

function pressed(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || document.querySelector("dialog[open]")) return;
  const { key, target } = event;
  if (target === byId("query")) {
    if (key === "Escape") {
      event.preventDefault();
      if (target.value) {
        target.value = "";
        search();
      } else leaveQuery();
    } else if (key === "Enter" || key === "ArrowDown") {
      event.preventDefault();
      search();
      leaveQuery();
    }
    return;
  }
  const inList = target === byId("rows") || target === document.body || byId("sessions").contains(target);
  const moves = { ArrowDown: 1, ArrowUp: -1, PageDown: listing.inView, PageUp: -listing.inView, Home: -Infinity, End: Infinity };
  const act = KEYS.find(([name, , does]) => does && name === key)?.[2];
  if (key === "Escape") {
    if (place.view !== "messages") show("messages");
    else if (openRow) close();
    else if (place.key !== null) go({ key: null });
  } else if (key === "Enter" && place.key !== null && inList && rows?.at(listing.cursor)) {
    openNumber(rows.at(listing.cursor).number).then(() => byId("detail").focus());
  } else if (inList && key in moves) move(moves[key]);
  else if (act) act();
  else return;
  event.preventDefault();
}

function leaveQuery() {
  if (place.key === null) return sessionTable.focus();
  byId("rows").focus();
  if (listing.cursor < 0) listing.move(1);
}

function search() {
  const q = byId("query").value;
  if (q !== place.q) go({ q }, true);
}

function setUp() {
  setUpTheme(() => {});
  for (const [name, , tone] of CHIPS) {
    const chip = make(`button.chip.${tone}`, { type: "button", "aria-pressed": "false" }, make("i.dot"), name);
    chip.dataset.name = name;
    chip.addEventListener("click", () => go({ show: place.show.includes(name) ? place.show.filter((each) => each !== name) : [...place.show, name] }, true));
    byId("chips").append(chip);
  }
  for (const [view, { title, key }] of Object.entries(VIEWS)) {
    const tab = make("button", { type: "button", title: `Key ${key}` }, title);
    tab.dataset.view = view;
    tab.addEventListener("click", () => show(view));
    byId("tabs").append(tab);
  }
  let wait = 0;
  byId("query").addEventListener("input", () => {
    clearTimeout(wait);
    wait = setTimeout(search, 150);
  });
  byId("help").addEventListener("click", () => showKeys(KEYS));
  byId("home").addEventListener("click", (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    go({ key: null });
  });
  byId("main").addEventListener("click", (event) => {
    if (event.target.closest(".more, .fold")) markHits(filterWords());
    const number = Number(event.target.closest("a[data-number]")?.dataset.number);
    if (!number || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    if (place.view === "messages") rows.wanted = number;
    go({ view: "messages", number, other: "", old: "", now: "" });
    rows?.refresh();
  });
  document.addEventListener("keydown", pressed);
  addEventListener("popstate", () => {
    const before = place;
    place = placeOf(location);
    render(before);
  });
  start();
}

/** Exchange the token of the address, which then disappears from it, and show the place. */
async function start() {
  const token = location.hash.slice(1);
  if (token) {
    history.replaceState(null, "", location.pathname + location.search);
    await guard(() => signIn(token));
  }
  place = placeOf(location);
  render();
}

setUp();
