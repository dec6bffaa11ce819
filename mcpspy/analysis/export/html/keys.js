// The keys and clicks of the page, and its start. The keys are those of the terminal UI, where it has the same action.

const KEYS = [
  ["/", "filter: the language of mcpspy show -q (docs/filter.md); text:word looks into the messages", () => byId("query").select()],
  ["j", "next row; arrows, Page Down and End work in the list", () => move(1)],
  ["k", "previous row", () => move(-1)],
  ["Enter", "open; in the filter, go to the first match", null],
  ["Esc", "close the message or the view; in the filter, clear it", null],
  ["g", "first row", () => move(-Infinity)],
  ["G", "last row; the list of a live session then follows", () => move(Infinity)],
  ["e", "next error", () => seek(1)],
  ["E", "previous error", () => seek(-1)],
  ["n", "next word of the filter in the message", () => nextHit(1)],
  ["N", "previous word of the filter", () => nextHit(-1)],
  ...source.keys,
  ["y", "copy the request, or the message", () => openRow && copyText(session.body(openRow.body))],
  ["Y", "copy the response", () => openRow?.answer >= 0 && copyText(session.body(openRow.answer))],
  ["t", "theme", () => byId("theme").click()],
  ["?", "show these keys", () => showKeys(KEYS, ...source.help())],
];

function move(by) {
  if (place.key === null) source.list().focus(by);
  else if (place.view === "messages") listing.move(by);
}

function pressed(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || document.querySelector("dialog[open]")) return;
  const { key, target } = event;
  if (target === byId("query")) {
    if (key === "Escape") {
      event.preventDefault();
      if (!target.value) return leaveQuery(false);
      target.value = "";
      search();
    } else if (key === "Enter" || key === "ArrowDown") {
      event.preventDefault();
      search();
      leaveQuery(true);
    }
    return;
  }
  const inList = target === byId("rows") || target === document.body || source.list?.().element.contains(target);
  const moves = { ArrowDown: 1, ArrowUp: -1, PageDown: listing.inView, PageUp: -listing.inView, Home: -Infinity, End: Infinity };
  const act = KEYS.find(([name, , does]) => does && name === key)?.[2];
  if (key === "Escape") {
    if (place.view !== "messages") show("messages");
    else if (openRow) close();
    else source.leave?.();
  } else if (key === "Enter" && place.key !== null && inList && listing.current) openAt(listing.current);
  else if (inList && key in moves) move(moves[key]);
  else if (act) act();
  else return;
  event.preventDefault();
}

async function openAt(row) {
  await openNumber(row.number);
  byId("detail").focus();
}

/** Go from the filter to the list, and there to the first match if none is selected. */
async function leaveQuery(goesToFirst) {
  if (place.key === null) return source.list().focus();
  // On a narrow page, an open message hides the list, which then takes no focus.
  byId(byId("rows").getClientRects().length ? "rows" : "detail").focus();
  await rows?.done;
  if (goesToFirst && listing.cursor < 0) listing.move(1);
}

/** Show a view of the session; in a list, the other list of this name if there is one. */
function show(view, home = place.home) {
  if (place.key === null) go({ home });
  else if (source.has(view)) go({ view, other: "", old: "", now: "", number: null, ...(source.hasStrip ? {} : { span: "" }) });
}

function addTab(title, key, data, act) {
  const tab = make("button", { type: "button", title: key ? `Key ${key}` : "" }, title);
  Object.assign(tab.dataset, data);
  tab.addEventListener("click", act);
  byId("tabs").append(tab);
}

/** Return whether a click on a link is one that opens it here, not in another tab. */
function isPlain(event) {
  return !event.ctrlKey && !event.metaKey && !event.shiftKey;
}

function setUp() {
  setUpTheme(() => {});
  source.setUp();
  for (const [name, , tone, count] of source.chips) {
    const chip = make(
      `button.chip.${tone}`,
      { type: "button", "aria-pressed": "false" },
      make("i.dot"),
      name,
      ...(count ? [" ", make("b", {}, commas(count))] : []),
    );
    chip.dataset.name = name;
    chip.addEventListener("click", () =>
      go({ show: place.show.includes(name) ? place.show.filter((each) => each !== name) : [...place.show, name] }, true),
    );
    byId("chips").append(chip);
  }
  for (const [view, { title, key }] of Object.entries(source.tabs)) addTab(title, key, { view }, () => show(view));
  let wait = 0;
  byId("query").addEventListener("input", () => {
    clearTimeout(wait);
    wait = setTimeout(search, 150);
  });
  byId("help").addEventListener("click", () => showKeys(KEYS, ...source.help()));
  byId("skip").addEventListener("click", (event) => {
    event.preventDefault();
    byId("main").focus();
  });
  byId("main").addEventListener("click", (event) => {
    if (event.target.closest(".more, .fold")) markHits(wordsToMark(place.q));
    const number = Number(event.target.closest("a[data-number]")?.dataset.number);
    if (!number || !isPlain(event)) return;
    event.preventDefault();
    go({ view: "messages", number, other: "", old: "", now: "" });
  });
  document.addEventListener("keydown", pressed);
  addEventListener("popstate", () => {
    const before = place;
    place = source.placeAt(location);
    render(before);
  });
}

async function start() {
  setUp();
  await source.start?.();
  place = source.placeAt(location);
  render();
}

start();
