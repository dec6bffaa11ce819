// The page: selection, filters and keys.
// Owns the state that its parts share: the filter, the chips, the time range, the order, and the open row.

const SLOW = [1, 0.3, 0.1, 0.03]; // Seconds; `slow` is the highest of these that some response reached.
const slow = SLOW.find((least) => session.rows.some((row) => row.latency >= least)) ?? SLOW[0];

const isBad = (row) => row.tone === "bad";
const isIn = (status) => (row) => !row.apart && session.tables.statuses[status].includes(row.state);
const CHIPS = [
  ["errors", isIn("error"), "bad"],
  ["unanswered", isIn("noanswer"), "bad"],
  [`slow ≥ ${duration(slow).replace(/\.0+ /, " ")}`, (row) => row.latency >= slow, "open"],
  ["pending", isIn("pending"), "open"],
  ["protocol issues", (row) => row.flaws.length > 0 || row.tone === "issue", "issue"],
  ["notifications", (row) => row.kind === "notification", "quiet"],
  ["stderr", (row) => row.kind === "stderr", "quiet"],
  ["HTTP", (row) => row.kind === "http", "quiet"],
];

/** Return whether a row is shown without a chip; HTTP headers are shown only for errors. */
const isUsual = (row) => row.kind !== "http" || row.tone === "bad";

const SLICE = 10; // Milliseconds of filtering between two chances to type.
const PAPER = "670px"; // Width between the margins of A4 and Letter.

const state = { typed: "", text: "", test: () => true, words: [], done: null, chips: new Set(), range: null, sort: null, run: 0 };
let openRow = null;
let isPushed = false;

const timeline = new Timeline(byId("canvas"), { chosen: (row) => choose(row), zoomed: zoom, moved: moveInTime });
const listing = new Listing(byId("rows"), { chosen: (row) => choose(row, false), opened: (row) => choose(row), sorted: sort });
listing.addColumns(session.facts.columns);

/** Compute the rows to show, in slices so that keys stay responsive. */
async function apply() {
  const run = ++state.run;
  const chosen = CHIPS.filter(([name]) => state.chips.has(name)).map(([, test]) => test);
  const [begin, end] = state.range ?? [session.begin, session.end];
  const fitting = [];
  let stop = performance.now() + SLICE;
  for (const row of session.rows) {
    if (chosen.length ? !chosen.some((test) => test(row)) : !isUsual(row)) continue;
    if (state.range && (row.at > end || row.last < begin)) continue;
    if (state.text && !state.test(itemOf(row))) continue;
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
  byId("nothing").textContent = session.rows.length ? "No matching rows. Words look at methods and subjects; text:WORD looks into the messages. Press Esc in the filter to clear it." : "Nothing was recorded.";
}

function isFiltered() {
  return state.text !== "" || state.chips.size > 0 || state.range !== null;
}

/** Make a row the current one, and show it in full if `opens`, or if another is open. */
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
  markHits(state.words);
  if (hits.length && hits[0].getBoundingClientRect().top > detail.getBoundingClientRect().bottom) nextHit(1);
  const address = `#${row.number}`;
  if (location.hash !== address) remember(address, isFirst);
  if (isFirst) listing.reveal();
}

/** Put the row into the address, for links to it; on a phone, going back then returns to the list. */
function remember(address, isNew) {
  try {
    if (isNew) history.pushState(null, "", address);
    else history.replaceState(null, "", address);
    isPushed ||= isNew;
  } catch {
    // A page without its own address has no links either.
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
  markHits(state.words);
  listing.measure();
  listing.reveal();
  byId("rows").focus();
}

function followAddress() {
  const row = session.byNumber.get(Number(location.hash.slice(1)));
  if (row) choose(row);
  else if (openRow) conceal();
}

/** Filter by the text in the box; resolve when the rows are ready. An invalid filter is explained, and changes nothing. */
function search() {
  const text = byId("query").value.trim();
  if (text === state.typed) return state.done;
  state.typed = text;
  let problem = "";
  try {
    state.test = compileFilter(text, session.tables, session.facts.lasted);
  } catch (error) {
    if (!(error instanceof FilterError)) throw error;
    problem = error.message;
  }
  byId("query").setAttribute("aria-invalid", String(problem !== ""));
  byId("found").classList.toggle("bad", problem !== "");
  if (problem) {
    byId("found").textContent = problem;
    return state.done;
  }
  state.text = text;
  state.words = wordsToMark(text);
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

/** Sort by a column: the largest first for numbers, then in reverse, then by time again. */
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
  if (!facts.ending) ending.title = "The session was still running, or mcpspy stopped before the server.";
  const { counts } = facts;
  const requests = countedWords(plural(counts.requests, "request"), [[counts.errors, "failed"], [counts.unanswered, "unanswered"], [counts.pending, "pending"]]);
  fillFacts(facts, `${plural(counts.messages, "message")}, ${requests}`, [["context", facts.context], ["directory", facts.cwd], ["session", facts.id]]);
  const warning = byId("warning");
  const left = counts.all - session.rows.length - session.rows.filter((row) => row.answer >= 0).length;
  const words = [];
  if (facts.redacted !== true) words.push("Recorded without redaction: this page contains the secrets that were sent.");
  if (left > 0) words.push(`Exported with a filter: this page omits ${left.toLocaleString("en")} of ${plural(counts.all, "line")} of the session.`);
  warning.textContent = words.join(" ");
  warning.hidden = !words.length;
}

const KEYS = [
  ["/", "filter: the language of mcpspy show -q (docs/filter.md); text:word looks into the messages", () => byId("query").select()],
  ["j", "next row; arrows, Page Down and End work in the list", () => listing.move(1)],
  ["k", "previous row", () => listing.move(-1)],
  ["Enter", "open the row; in the filter, go to the first match", null],
  ["Esc", "close the message; in the filter, clear it", null],
  ["e", "next error", () => listing.seek(isBad, 1)],
  ["E", "previous error", () => listing.seek(isBad, -1)],
  ["n", "next word of the filter in the message", () => nextHit(1)],
  ["N", "previous word of the filter", () => nextHit(-1)],
  ["g", "first row", () => listing.move(-Infinity)],
  ["G", "last row", () => listing.move(Infinity)],
  ["y", "copy the request, or the message", () => openRow && copyText(session.body(openRow.body))],
  ["Y", "copy the response", () => openRow?.answer >= 0 && copyText(session.body(openRow.answer))],
  ["t", "theme", () => byId("theme").click()],
  ["?", "show these keys", help],
];

function help() {
  const more = make("p", {}, "Click a bar of the timeline to open it; drag over the timeline to select a time range. Several chips show the rows that match any of them.");
  const from = make("p.aside", {}, `Created by mcpspy ${session.version}. The page is self-contained and makes no network requests.`);
  showKeys(KEYS, more, from);
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

/** Print all rows, in the light theme. */
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
  byId("help").addEventListener("click", help);
  byId("skip").addEventListener("click", (event) => {
    event.preventDefault();
    byId("rows").focus();
  });
  byId("detail").addEventListener("click", (event) => {
    if (event.target.closest(".more, .fold")) markHits(state.words);
    const row = session.byNumber.get(Number(event.target.closest("a")?.dataset.number));
    if (!row) return;
    event.preventDefault(); // The link opens no new history entry: closing the message returns to the list.
    choose(row);
  });
  document.addEventListener("keydown", pressed);
  addEventListener("hashchange", followAddress);
  setUpPaper();
  apply();
  followAddress();
}

setUp();
