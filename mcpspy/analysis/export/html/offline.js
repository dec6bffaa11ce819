// The source of an exported page: what `mcpspy web` asks the server for comes from the file.

const SLOW = [1, 0.3, 0.1, 0.03]; // Seconds; `slow` is the highest of these that some response reached.
const SLICE = 10; // Milliseconds of filtering between two chances to type.
const PAPER = "670px"; // Width between the margins of A4 and Letter.
const BARS = 1500; // Requests of a timeline that are drawn one by one.

/** Return whether a row is shown without the chip of HTTP, which shows the headers of all exchanges. */
const isUsual = (row) => !file.isFolded(row) && (row.kind !== "http" || row.tone === "bad");

/** The rows of the page that match a filter, in an order; found in slices, so that keys stay responsive. */
class LocalRows {
  constructor(parameters, { loaded, failed }) {
    Object.assign(this, { parameters, loaded, failed, found: [], unfiltered: file.rows.filter(isUsual).length });
  }

  get length() {
    return this.found.length;
  }

  at(place) {
    return this.found[place];
  }

  indexOf(row) {
    return this.found.indexOf(row);
  }

  refresh() {
    this.done = this.find();
  }

  async find() {
    const { q, order, http, span } = this.parameters;
    let test;
    try {
      test = compileFilter(q, file.tables, file.facts.lasted);
    } catch (error) {
      if (!(error instanceof FilterError)) throw error;
      return this.failed(this, error);
    }
    const [begin, end] = span ?? [-Infinity, Infinity];
    const found = [];
    let stop = performance.now() + SLICE;
    for (const row of file.rows) {
      if (!isUsual(row) && !(http && row.kind === "http")) continue;
      if (row.at > end || row.last < begin || (q && !test(itemOf(row)))) continue;
      found.push(row);
      if (performance.now() < stop) continue;
      byId("found").textContent = `${commas(found.length)} found …`;
      await new Promise((resolve) => setTimeout(resolve));
      if (rows !== this) return;
      stop = performance.now() + SLICE;
    }
    const [name, isReverse] = order.split("-");
    if (order !== "time") {
      const key = KEYS_OF_ORDERS[name];
      const sign = NUMERIC.includes(name) === Boolean(isReverse) ? 1 : -1;
      found.sort((one, other) => sign * (key(one) < key(other) ? -1 : key(one) > key(other) ? 1 : 0));
    }
    this.found = found;
    await this.loaded(this, { order: name });
  }
}

const KEYS_OF_ORDERS = {
  time: (row) => row.at,
  latency: (row) => row.latency ?? -1,
  size: (row) => row.size + row.answerSize,
  method: (row) => row.method,
  subject: (row) => row.subject,
  status: (row) => row.status,
};

/** Count requests in the parts of a window of time, as `ui/model/timeline.py` does for the server. */
function countParts(requests, begin, end, parts) {
  const { statuses, subscription } = file.tables;
  const zeros = () => new Array(parts).fill(0);
  const track = { began: zeros(), peak: zeros(), failed: zeros(), unanswered: zeros(), slowest: zeros(), number: zeros() };
  const partOf = (at) => Math.min(Math.max(Math.floor(((at - begin) / (end - begin)) * parts), 0), parts - 1);
  const changes = { client: [], server: [] };
  for (const row of requests) {
    const isApart = row.apart || row.method === subscription || (row.answer >= 0 && row.latency === null);
    if (!isApart) changes[row.side].push([row.at, 1], [row.last, -1]);
    if (row.at < begin) continue;
    const part = partOf(row.at);
    track.began[part]++;
    if (!row.apart) track.failed[part] += statuses.error.includes(row.state);
    if (!row.apart) track.unanswered[part] += statuses.noanswer.includes(row.state);
    if (track.number[part] && (isApart || row.last - row.at < track.slowest[part])) continue;
    track.number[part] = row.number;
    track.slowest[part] = isApart ? 0 : row.last - row.at;
  }
  for (const side of Object.values(changes)) {
    let inFlight = 0;
    let part = 0;
    side.sort(([at, change], [other, second]) => at - other || change - second);
    for (const [at, change] of [...side, [end, 0]]) {
      const next = partOf(at);
      while (part < next) track.peak[++part] = Math.max(track.peak[part], inFlight);
      inFlight += change;
      track.peak[part] = Math.max(track.peak[part], inFlight);
    }
  }
  return track;
}

/** Return the worst of the messages and events of each part that are not requests. */
function ticksOf(others, begin, end, parts) {
  const worst = new Map();
  for (const row of others) {
    const part = Math.floor(((row.at - begin) / (end - begin)) * parts);
    const known = worst.get(part);
    if (!known || TONES.indexOf(row.tone) > TONES.indexOf(known.tone)) worst.set(part, row);
  }
  return [...worst.values()];
}

function timelineOf(shown, span, parts) {
  const whole = Math.max(file.end, 1e-5);
  const [begin, end] = span ?? [0, whole];
  const matching = new Set(shown);
  const inWindow = file.rows.filter((row) => row.at <= end && row.last >= begin && row.kind !== "http" && !file.isFolded(row));
  const requests = inWindow.filter((row) => row.kind === "request");
  const others = inWindow.filter((row) => row.kind !== "request" && matching.has(row));
  const bar = (row) => ({ ...row, track: 0, begin: row.at, end: row.last, tone: matching.has(row) ? row.tone : "dim" });
  return {
    begin,
    end,
    whole,
    tracks: [
      countParts(
        requests.filter((row) => matching.has(row)),
        begin,
        end,
        parts,
      ),
    ],
    bars: requests.length <= BARS ? requests.map(bar) : null,
    ticks: ticksOf(others, begin, end, parts),
  };
}

/** Print all rows, in the light theme. */
function setUpPaper() {
  const { dataset } = document.documentElement;
  let theme;
  addEventListener("beforeprint", () => {
    theme = dataset.theme;
    dataset.theme = "light";
    tracks.fit(PAPER);
    listing.drawn = null;
    listing.draw(true);
    byId("cut").textContent = rows.length > PRINTED ? `The first ${commas(PRINTED)} of ${plural(rows.length, "row")}.` : "";
  });
  addEventListener("afterprint", () => {
    if (theme) dataset.theme = theme;
    else delete dataset.theme;
    tracks.fit("");
    listing.measure();
  });
}

/** Return the chips that find something, each with its number of rows; *slow* is as slow as this session has it. */
function countedChips() {
  const slow = SLOW.find((least) => file.rows.some((row) => row.latency >= least)) ?? SLOW[0];
  const chips = CHIPS.map(([name, text, tone]) =>
    name === "slow" ? [`slow ≥ ${duration(slow).replace(/\.0+ /, " ")}`, `latency>=${slow}s`, tone, 0] : [name, text, tone, 0],
  );
  const tests = chips.map(([, text]) => compileFilter(text, file.tables, file.facts.lasted));
  for (const row of file.rows) {
    const item = itemOf(row);
    for (let i = 0; i < tests.length && !file.isFolded(row); i++) chips[i][3] += tests[i](item);
  }
  return chips.filter(([, , , count]) => count);
}

const source = {
  /** The timeline is also above the list, and its range selects the rows. */
  hasStrip: true,
  chips: [],
  orders: Object.keys(KEYS_OF_ORDERS),
  tabs: { messages: { title: "Messages", key: "1" }, timeline: { title: "Timeline", key: "5" } },
  keys: [
    ["1", "messages", () => show("messages")],
    ["5", TIMELINE_HELP, () => show("timeline")],
  ],
  nothing: "Nothing was recorded.",
  has: () => true,
  help: () => [
    make(
      "p",
      {},
      "Click a bar of the timeline to open it; drag over the timeline to select a time range. Several chips show the rows that match any of them.",
    ),
    make("p.aside", {}, `Created by mcpspy ${file.version}. The page is self-contained and makes no network requests.`),
  ],
  addressOf(at) {
    const address = `${at.number ?? ""}${parametersOf({ ...at, order: START.order })}`;
    return address ? `#${address}` : location.pathname + location.search;
  },
  placeAt({ hash }) {
    const [number, parameters] = hash.slice(1).split("?");
    return placeOf(parameters, { key: "", number: file.byNumber.has(Number(number)) ? number : null });
  },
  render: () => false,
  rows: (parameters, page) => new LocalRows({ ...parameters, span: spanOf() }, page),
  placeIn(found, number) {
    const at = found.found.findIndex((row) => row.number === number);
    return at < 0 ? null : at;
  },
  seek(found, from, step) {
    const test = compileFilter(file.tables.errors, file.tables, file.facts.lasted);
    let at = from + step;
    while (at >= 0 && at < found.length && !test(itemOf(found.at(at)))) at += step;
    return at >= 0 && at < found.length ? { place: at, number: found.at(at).number } : { place: null };
  },
  explains(error) {
    explain(error.message);
    return true;
  },
  load(number) {
    const row = file.byNumber.get(number);
    return row && { row, open: file.open(row) };
  },
  async timeline(parts) {
    await rows?.done;
    return timelineOf(rows?.found ?? [], spanOf(), parts);
  },
  /** Show the user's cells and the views of a row, as they were at the time of the export. */
  views: (row, shows) => shows({ cells: row.cells ?? [], views: file.views }),
  warnings({ all }) {
    const left = all - file.rows.length - file.rows.filter((row) => row.answer >= 0).length;
    return left > 0 ? [`Exported with a filter: this page omits ${commas(left)} of ${plural(all, "line")} of the session.`] : [];
  },
  setUp() {
    showFacts({ ...file.facts, ...file.facts.counts });
    this.chips = countedChips();
    setUpPaper();
  },
};
