// Sets up the page: its chips, tabs and events, then the place of the address.

function setUp() {
  setUpTheme(() => {});
  for (const [name, , tone] of CHIPS) {
    const chip = make(`button.chip.${tone}`, { type: "button", "aria-pressed": "false" }, make("i.dot"), name);
    chip.dataset.name = name;
    chip.addEventListener("click", () => go({ show: place.show.includes(name) ? place.show.filter((each) => each !== name) : [...place.show, name] }, true));
    byId("chips").append(chip);
  }
  const addTab = (title, key, data, act) => {
    const tab = make("button", { type: "button", title: key ? `Key ${key}` : "" }, title);
    Object.assign(tab.dataset, data);
    tab.addEventListener("click", act);
    byId("tabs").append(tab);
  };
  for (const [home, title, key] of [["sessions", "Sessions", "1"], ["runs", "Runs", "2"]]) addTab(title, key, { home }, () => go({ home }));
  for (const [view, { title, key }] of Object.entries(VIEWS)) addTab(title, key, { view }, () => show(view));
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
  document.addEventListener("click", (event) => {
    const key = event.target.closest("a:not(.listed)[data-key]")?.dataset.key;
    if (!key || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    go({ key });
  });
  byId("main").addEventListener("click", (event) => {
    if (event.target.closest(".more, .fold")) markHits(wordsToMark(place.q));
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
