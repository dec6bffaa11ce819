// What only the live page has: the lists of sessions and runs, the reports, news of the server, and the sign-in.
// Owns the row that is chosen for a comparison.

let chosenRow = null;

const events = new Events(news, (isConnected) => (byId("connection").hidden = isConnected));
const lists = {
  sessions: new SessionTable(byId("sessions"), { opened: goInto, compared: (key, other) => goInto(key, { view: "diff", other }) }),
  runs: new RunTable(byId("runs"), goInto),
};

/** Go to a session or a run, or to the list of the place with `null`. */
function goInto(key, members = {}) {
  return go({ ...START, home: place.key === null ? place.home : homeOf(place.key), key, ...members });
}

/** Return the list to which a session or a run belongs. */
function homeOf(key) {
  return key.startsWith(RUN) ? "runs" : "sessions";
}

function leaveSession() {
  return goInto(null);
}

/** Show the parts of the page that only a place in the server has; return whether these are its contents. */
function renderLive() {
  const { key, view } = place;
  const isList = key === null;
  const isRun = !isList && key.startsWith(RUN);
  const isReport = !isList && VIEWS[view].show !== undefined;
  for (const [name, { element }] of Object.entries(lists)) element.hidden = !isList || name !== place.home;
  byId("report").hidden = !isReport;
  byId("home").hidden = byId("ending").hidden = isList;
  byId("home").textContent = isRun ? "Runs" : "Sessions";
  byId("home").href = source.addressOf({ ...START, home: isList ? place.home : homeOf(key) });
  byId("find").hidden = isList ? place.home === "runs" : isReport && (view !== "stats" || isRun);
  byId("chips").hidden = isList || isReport;
  byId("query").placeholder = isList
    ? "Filter: words, server:weather, errors>0, since:2h"
    : "Filter: tool:echo, is:error, >200ms, text:words";
  for (const tab of byId("tabs").children) {
    const { home, view: shown } = tab.dataset;
    tab.hidden = isList ? !home : Boolean(home) || (isRun && !VIEWS[shown].ofRuns) || (shown === "diff" && view !== "diff");
    tab.setAttribute("aria-current", (isList ? home === place.home : shown === view) ? "page" : "false");
  }
  events.listen(key);
  if (isList) showList();
  else if (isReport) showReport();
  return isList || isReport;
}

/** Forget the session that was shown. */
function beginLive() {
  chosenRow = null;
  session.facts = { started: "", lasted: 0 };
  byId("facts").replaceChildren();
  byId("target").textContent = byId("found").textContent = "";
  byId("warning").hidden = true;
  control.show(null);
  play.show(null);
  byId("name").textContent = place.key === null ? "mcpspy" : "…";
  byId("ending").textContent = "";
  document.title = "mcpspy";
}

async function showList() {
  const { home, q } = place;
  await guard(async () => {
    const found = await fetchJson(home, { q });
    if (place.key !== null || place.home !== home) return;
    source.list().showFound(found);
    byId("found").textContent = plural(found.total, home.slice(0, -1));
    if (document.activeElement === document.body) source.list().focus();
  });
}

/** Run a request; show its error. */
async function guard(work) {
  try {
    return await work();
  } catch (error) {
    if (error instanceof ServerError) source.explains(error);
    else byId("connection").hidden = false;
  }
  return null;
}

/** Take an event of the server: the list, or the facts of the session. */
function news(key, facts) {
  if (key !== place.key) return;
  call.allowed = facts.calls === true;
  byId("calls").hidden = !call.allowed;
  if (key === null) return showList();
  const isFirst = !session.facts.name;
  showFacts(facts);
  document.title = `${facts.name} - mcpspy`;
  if (isFirst) listing.measure(); // The rows of a run have one more column.
  control.show(facts.control);
  play.show(facts.play);
  if (isFirst && openRow) refreshMessage(byId("detail"), openRow);
  if (place.view === "timeline") return refreshTracks();
  if (place.view !== "messages") return;
  rows?.refresh();
  if (openRow?.tone === "open" || (openRow && session.open.along.length)) reload();
}

let tracksWait = 0;

/** Load the timeline again, at most once per second: a live session has news more often. */
function refreshTracks() {
  if (tracksWait) return;
  tracksWait = setTimeout(() => {
    tracksWait = 0;
    if (place.view === "timeline") tracks.refresh();
  }, 1000);
}

/** Show what depends on facts of the session that arrived after the row: the time of day, and the user's cells. */
function refreshMessage(element, row) {
  element.querySelector(".about").textContent = factsOf(row);
  session.views(row, (found) => showViews(element, found));
}

/** Show the open row again: its request was answered meanwhile. */
async function reload() {
  const { number } = openRow;
  const found = await source.load(number);
  if (found && openRow?.number === number && found.row.state !== openRow.state) showRow(found);
}

async function showReport() {
  const { key, view, other, old, now, q } = place;
  const report = byId("report");
  report.replaceChildren(make("p.aside", {}, "Reading the session …"));
  const found = await guard(() => fetchJson(inSession(view, key), { with: other, old, new: now, q: view === "stats" ? q : "" }));
  if (place.key !== key || place.view !== view || place.q !== q) return;
  report.replaceChildren(...(found ? VIEWS[view].show(found) : [make("p.bad", {}, byId("found").textContent)]));
  if (found) byId("found").textContent = "";
  report.focus();
}

/** Choose a row for a comparison, or compare the chosen one with this. */
function compareRow() {
  const row = listing.current;
  if (!row || row.exchange === null) return announce("select a request");
  if (chosenRow === null || chosenRow === row.number) {
    chosenRow = chosenRow === null ? row.number : null;
    return announce(chosenRow === null ? "no request chosen" : `compare #${chosenRow}: press d on another request`);
  }
  const old = String(chosenRow);
  chosenRow = null;
  go({ view: "diff", old, now: String(row.number), number: null, other: "" });
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
  dialog.replaceChildren(
    make("h2", {}, "This browser is not signed in"),
    make("p", {}, "Paste the address that mcpspy web printed. Each start of mcpspy web has a new one."),
    form,
    wrong,
  );
  dialog.showModal();
}

function setUpLive() {
  new Completion(byId("query"));
  byId("calls").addEventListener("click", () => call.ask());
  for (const [home, title, key] of [
    ["sessions", "Sessions", "1"],
    ["runs", "Runs", "2"],
  ])
    addTab(title, key, { home }, () => go({ home }));
  byId("home").addEventListener("click", (event) => {
    if (!isPlain(event)) return;
    event.preventDefault();
    leaveSession();
  });
  document.addEventListener("click", (event) => {
    const key = event.target.closest("a:not(.listed)[data-key]")?.dataset.key;
    if (!key || !isPlain(event)) return;
    event.preventDefault();
    goInto(key);
  });
}

/** Exchange the token of the address for a cookie; the token then disappears from the address. */
async function signInWithAddress() {
  const token = location.hash.slice(1);
  if (!token) return;
  history.replaceState(null, "", location.pathname + location.search);
  await guard(() => signIn(token));
}
