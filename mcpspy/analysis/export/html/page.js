// The page: what is chosen, searched and filtered, and which key does what.
// Owns the state that its parts share: the query, the chips, the stretch of time, the order, and the row that is open.

const SLOW = [1, 0.3, 0.1, 0.03]; // Seconds; the longest that some answer took is what `slow` means here.
const slow = SLOW.find((least) => session.rows.some((row) => row.latency >= least)) ?? SLOW[0];

const isBad = (row) => row.tone === "bad";
const CHIPS = [
  ["errors", isBad, "bad"],
  [`slow ≥ ${duration(slow).replace(/\.0+ /, " ")}`, (row) => row.latency >= slow, "open"],
  ["pending", (row) => row.state === "pending" || row.state === "no answer", "open"],
  ["odd", (row) => row.flaws.length > 0 || row.tone === "issue", "issue"],
  ["notifications", (row) => row.kind === "notification", "quiet"],
  ["stderr", (row) => row.kind === "stderr", "quiet"],
  ["HTTP", (row) => row.kind === "http", "quiet"],
];

/** Whether a row is there when nobody asked for it: heads of HTTP are if something is wrong with them. */
const isUsual = (row) => row.kind !== "http" || row.tone === "bad";

const PAPER = "670px"; // What A4 and Letter have between their margins.

const state = { text: "", words: [], done: null, chips: new Set(), range: null, sort: null, run: 0 };
let openRow = null;
let hits = [];
let hit = -1;
let isPushed = false;

const timeline = new Timeline(byId("canvas"), { chosen: (row) => choose(row), zoomed: zoom, moved: moveInTime });
const listing = new Listing(byId("rows"), { chosen: (row) => choose(row, false), opened: (row) => choose(row), sorted: sort });

/** Work out which rows are shown, without keeping a key waiting. */
async function apply() {
  const run = ++state.run;
  const chosen = CHIPS.filter(([name]) => state.chips.has(name)).map(([, test]) => test);
  const [begin, end] = state.range ?? [session.begin, session.end];
  const fitting = [];
  let stop = performance.now() + SLICE;
  for (const row of session.rows) {
    if (chosen.length ? !chosen.some((test) => test(row)) : !isUsual(row)) continue;
    if (state.range && (row.at > end || row.last < begin)) continue;
    if (!fits(row, state.words)) continue;
    fitting.push(row);
    if (performance.now() < stop) continue;
    byId("found").textContent = `${fitting.length.toLocaleString("en")} found …`;
    await new Promise((resolve) => setTimeout(resolve));
    if (run !== state.run) return;
    stop = performance.now() + SLICE;
  }
  if (state.sort) {
    const { key, isDown } = state.sort;
    const compare = (one, other) => (key(one) < key(other) ? -1 : key(one) > key(other) ? 1 : 0);
    fitting.sort((one, other) => (isDown ? compare(other, one) : compare(one, other)));
  }
  listing.show(fitting, state.words, [begin, end]);
  timeline.show(fitting, [begin, end]);
  const usual = session.rows.filter(isUsual).length;
  byId("found").textContent = isFiltered() ? `${fitting.length.toLocaleString("en")} of ${plural(usual, "row")}` : plural(usual, "row");
  byId("nothing").hidden = fitting.length > 0;
  byId("nothing").textContent = session.rows.length ? "Nothing here. Esc in the search drops it, and so does a chip pressed again." : "Nothing was recorded.";
}

function isFiltered() {
  return state.words.length > 0 || state.chips.size > 0 || state.range !== null;
}

/** Make a row the current one, and show it in full if `opens`, or if one is shown already. */
function choose(row, opens = true) {
  listing.select(row);
  timeline.select(row);
  if (opens || openRow) show(row);
}

function show(row) {
  const detail = byId("detail");
  const isFirst = openRow === null;
  openRow = row;
  detail.hidden = false;
  document.body.classList.add("reading");
  showMessage(detail, row, state.words, close);
  markHits();
  if (hits.length && hits[0].getBoundingClientRect().top > detail.getBoundingClientRect().bottom) nextHit(1);
  const address = `#${row.number}`;
  if (location.hash !== address) remember(address, isFirst);
  if (isFirst) listing.reveal();
}

/** Put the row into the address: so a link leads to it, and on a phone going back leads to the list. */
function remember(address, isNew) {
  try {
    if (isNew) history.pushState(null, "", address);
    else history.replaceState(null, "", address);
    isPushed ||= isNew;
  } catch {
    // A page without an address of its own has no links either.
  }
}

function close() {
  if (!openRow) return;
  const leavesEntry = isPushed;
  conceal();
  if (leavesEntry) history.back();
  else remember(location.pathname + location.search, false);
}

function conceal() {
  openRow = null;
  isPushed = false;
  byId("detail").hidden = true;
  byId("detail").replaceChildren();
  document.body.classList.remove("reading");
  markHits();
  listing.measure();
  listing.reveal();
  byId("rows").focus();
}

function followAddress() {
  const row = session.byNumber.get(Number(location.hash.slice(1)));
  if (row) choose(row);
  else if (openRow) conceal();
}

function markHits() {
  hits = openRow ? highlight("found", byId("detail").querySelectorAll("h2, .badge, .flaws, .along, .sides .body, .http"), state.words) : [];
  hit = -1;
  if (!openRow) highlight("found", [], []);
}

/** Go to the next place in the message where something was found. */
function nextHit(by) {
  if (!hits.length) return announce("nothing found in this message");
  hit = (hit + by + hits.length + (hit < 0 && by < 0 ? 1 : 0)) % hits.length;
  hits[hit].startContainer.parentElement.scrollIntoView({ block: "center", inline: "nearest" });
  if (CSS.highlights) CSS.highlights.set("current", new Highlight(hits[hit]));
  announce(`${hit + 1} of ${hits.length}`);
}

/** Search for what stands in the box; resolve once the rows are there. */
function search() {
  const text = byId("query").value;
  if (text === state.text) return state.done;
  state.text = text;
  state.words = wordsOf(text);
  state.done = apply();
  if (openRow) show(openRow);
  return state.done;
}

async function goToFound() {
  await search();
  byId("rows").focus();
  if (listing.cursor < 0) listing.move(1);
}

function zoom(range) {
  state.range = range;
  byId("whole").hidden = range === null;
  apply();
}

function moveInTime(by) {
  const rows = listing.rows;
  const next = rows[Math.min(Math.max(listing.cursor + by, 0), rows.length - 1)];
  if (next) choose(next, false);
}

/** Sort by a column: largest first where that is what one looks for, then the other way, then by time again. */
function sort(name, key) {
  const first = name === "took" || name === "sizes";
  if (state.sort?.name !== name) state.sort = { name, key, isDown: first };
  else state.sort = state.sort.isDown === first ? { name, key, isDown: !first } : null;
  listing.markSort(state.sort?.name, state.sort?.isDown);
  apply();
}

function setUpChips() {
  for (const [name, test, tone] of CHIPS) {
    const count = session.rows.reduce((sum, row) => sum + test(row), 0);
    if (!count) continue;
    const chip = make(`button.chip.${tone}`, { type: "button", "aria-pressed": "false" }, `${name} `, make("b", {}, count.toLocaleString("en")));
    chip.addEventListener("click", () => {
      if (!state.chips.delete(name)) state.chips.add(name);
      chip.setAttribute("aria-pressed", String(state.chips.has(name)));
      apply();
    });
    byId("chips").append(chip);
  }
}

function setUpHead() {
  const { facts } = session;
  byId("name").textContent = facts.name;
  const ending = byId("ending");
  ending.textContent = facts.ending || "no end recorded";
  ending.classList.add(facts.endingTone);
  if (!facts.ending) ending.title = "The session was still running, or mcpspy was stopped before the server.";
  const { counts } = facts;
  const fates = [[counts.errors, "failed"], [counts.unanswered, "without an answer"]];
  const said = fates.filter(([count]) => count).map(([count, words]) => `${count.toLocaleString("en")} ${words}`);
  const asked = plural(counts.requests, "request") + (said.length ? ` (${said.join(", ")})` : "");
  const pairs = [
    ["server", facts.server],
    ["client", facts.client],
    ["protocol", facts.revision],
    ["transport", facts.transport],
    ["started", clock(facts.started, 0).replace(/\.\d+/, "") || facts.started],
    ["lasted", duration(facts.lasted)],
    ["holds", `${plural(counts.messages, "message")}, ${asked}`],
    ["in", facts.cwd],
    ["session", facts.id],
  ];
  for (const [name, value] of pairs) {
    if (value) byId("facts").append(make(`div.${name}`, {}, make("dt", {}, name), make("dd", {}, ...visible(value))));
  }
  const warning = byId("warning");
  const left = counts.all - session.rows.length - session.rows.filter((row) => row.answer >= 0).length;
  const words = [];
  if (facts.redacted !== true) words.push("Recorded without redaction: secrets that were sent are in this page.");
  if (left > 0) words.push(`Exported by a filter: of ${plural(counts.all, "line")} of the session, ${left.toLocaleString("en")} are not in this page.`);
  warning.textContent = words.join(" ");
  warning.hidden = !words.length;
}

const KEYS = [
  ["/", "search; words all have to occur, \"in quotes\" as they stand, -word must not; a piece of JSON is found as it is", () => byId("query").select()],
  ["j", "next row; arrows, Page Down and End work in the list", () => listing.move(1)],
  ["k", "previous row", () => listing.move(-1)],
  ["Enter", "open the row; in the search, go to the first row found", null],
  ["Esc", "close the message; in the search, drop it", null],
  ["e", "next error", () => listing.seek(isBad, 1)],
  ["E", "previous error", () => listing.seek(isBad, -1)],
  ["n", "next place in the message where something was found", () => nextHit(1)],
  ["N", "the one before", () => nextHit(-1)],
  ["g", "first row", () => listing.move(-Infinity)],
  ["G", "last row", () => listing.move(Infinity)],
  ["y", "copy the request, or the message", () => openRow && copyText(session.body(openRow.body))],
  ["Y", "copy the answer", () => openRow?.answer >= 0 && copyText(session.body(openRow.answer))],
  ["t", "theme", () => byId("theme").click()],
  ["?", "these keys", showKeys],
];

function showKeys() {
  const dialog = byId("keys");
  const rows = KEYS.map(([key, words]) => make("div", {}, make("dt", {}, make("kbd", {}, key)), make("dd", {}, words)));
  const more = make("p", {}, "Click a bar of the timeline to open it, drag over the timeline to see that time only. Several chips show what is in any of them.");
  const done = button("Close", "Esc", () => dialog.close());
  const from = make("p.aside", {}, `Made by mcpspy ${session.version}. Everything is in this page; it asks no network for anything.`);
  dialog.replaceChildren(make("h2", {}, "Keys"), make("dl", {}, ...rows), more, from, done);
  dialog.showModal();
}

function inField(target) {
  return target.matches("input, textarea, select");
}

function pressed(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || byId("keys").open) return;
  const { key, target } = event;
  if (inField(target)) {
    if (key === "Escape") {
      event.preventDefault();
      if (target.value) {
        target.value = "";
        search();
      } else byId("rows").focus();
    } else if (key === "Enter" || key === "ArrowDown") {
      event.preventDefault();
      goToFound();
    }
    return;
  }
  const inList = target === byId("rows") || target === document.body;
  const moves = { ArrowDown: 1, ArrowUp: -1, PageDown: listing.inView, PageUp: -listing.inView, Home: -Infinity, End: Infinity };
  const act = KEYS.find(([name, , does]) => does && name === key)?.[2];
  if (key === "Escape") close();
  else if (key === "Enter" && inList && listing.cursor >= 0) {
    show(listing.rows[listing.cursor]);
    byId("detail").focus();
  } else if (inList && key in moves) listing.move(moves[key]);
  else if (act) act();
  else return;
  event.preventDefault();
}

/** On paper all rows are there, and it is light whatever the screen is. */
function setUpPaper() {
  const { dataset } = document.documentElement;
  const { style } = byId("canvas");
  let theme;
  addEventListener("beforeprint", () => {
    theme = dataset.theme;
    dataset.theme = "light";
    style.width = PAPER;
    listing.drawn = null;
    listing.draw(true);
    timeline.paint();
    byId("cut").textContent = listing.rows.length > PRINTED ? `The first ${PRINTED.toLocaleString("en")} of ${plural(listing.rows.length, "row")}.` : "";
  });
  addEventListener("afterprint", () => {
    if (theme) dataset.theme = theme;
    else delete dataset.theme;
    style.width = "";
    listing.measure();
    timeline.paint();
  });
}

function setUp() {
  setUpHead();
  setUpChips();
  setUpTheme(() => timeline.paint());
  let wait = 0;
  byId("query").addEventListener("input", () => {
    clearTimeout(wait);
    wait = setTimeout(search, 120);
  });
  byId("whole").addEventListener("click", () => zoom(null));
  byId("help").addEventListener("click", showKeys);
  byId("skip").addEventListener("click", (event) => {
    event.preventDefault();
    byId("rows").focus();
  });
  byId("detail").addEventListener("click", (event) => {
    if (event.target.closest(".more, .fold")) markHits();
    const row = session.byNumber.get(Number(event.target.closest("a")?.hash.slice(1)));
    if (!row) return;
    event.preventDefault(); // Going there is no page of its own: closing the message leads to the list.
    choose(row);
  });
  document.addEventListener("keydown", pressed);
  addEventListener("hashchange", followAddress);
  setUpPaper();
  apply();
  followAddress();
}

setUp();
