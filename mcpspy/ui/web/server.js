// The connection to the server: requests, events, and the rows of a session in chunks.
// Owns what the page keeps of a session: at most KEPT chunks of rows, and the bodies of the open row.

const CHUNK = 100; // Rows of one request.
const KEPT = 40;

class ServerError extends Error {
  constructor(status, answer) {
    super(answer.error ?? `HTTP ${status}`);
    Object.assign(this, { status, ...answer });
  }
}

/** Return the JSON of an address; throw ServerError with the text of the server. */
async function fetchJson(path, parameters = {}) {
  const given = Object.entries(parameters).filter(([, value]) => value !== "" && value !== null && value !== undefined);
  const response = await fetch(`/api/${path}?${new URLSearchParams(given)}`);
  const answer = await response.json();
  if (!response.ok) throw new ServerError(response.status, answer);
  return answer;
}

/** Exchange a token for a cookie; return whether the server accepts it. */
async function signIn(token) {
  return (await fetch("/api/login", { method: "POST", body: token })).ok;
}

/** The events of the list or of a session, while the page is visible; the browser reconnects by itself. */
class Events {
  constructor(changed, connected) {
    this.changed = changed;
    this.connected = connected;
    this.key = undefined;
    this.source = null;
    document.addEventListener("visibilitychange", () => (document.hidden ? this.stop() : this.start()));
    addEventListener("pageshow", () => this.start());
  }

  /** Listen to a session, or to the list with `null`. */
  listen(key) {
    if (key === this.key && this.source) return;
    this.stop();
    this.key = key;
    this.start();
  }

  start() {
    if (this.source || this.key === undefined || document.hidden) return;
    const { key } = this;
    const source = new EventSource(`/api/events${key === null ? "" : `?session=${encodeURIComponent(key)}`}`);
    this.source = source;
    source.onmessage = (event) => this.source === source && this.changed(key, JSON.parse(event.data));
    source.onopen = () => this.connected(true);
    source.onerror = () => {
      this.connected(false);
      if (source.readyState !== EventSource.CLOSED) return;
      this.stop(); // The server refused: it was started again, and knows another token.
      setTimeout(() => this.start(), 3000);
    };
  }

  stop() {
    this.source?.close();
    this.source = null;
  }
}

/** The rows of a session that match a filter, as `Listing` takes them: loaded when they are drawn. */
class RemoteRows {
  constructor(key, parameters, { loaded, failed }) {
    Object.assign(this, { key, parameters, loaded, failed, length: 0, unfiltered: 0, version: 0 });
    this.chunks = new Map();
    this.loading = new Set();
    this.recent = [0]; // The chunks in view; what was scrolled past is not loaded.
  }

  at(place) {
    const number = Math.floor(place / CHUNK);
    if (this.recent[0] !== number) this.recent = [number, ...this.recent.filter((each) => each !== number)].slice(0, 2);
    this.load();
    return this.chunks.get(number)?.rows[place % CHUNK];
  }

  indexOf(row) {
    return row?.source === this ? row.place : -1;
  }

  /** Load what is in view again: rows were added, or have changed. */
  refresh() {
    this.version++;
    this.done = this.load();
  }

  async load() {
    const number = this.recent.find((each) => !this.loading.has(each) && this.chunks.get(each)?.version !== this.version);
    if (number === undefined || this.loading.size >= 2) return;
    this.loading.add(number);
    const { version } = this;
    let rows = this.chunks.get(number)?.rows ?? [];
    try {
      const answer = await fetchJson(inSession("rows", this.key), { ...this.parameters, first: number * CHUNK, count: CHUNK });
      rows = answer.rows.map((row, i) => ({
        ...rowOf(row, session.facts.lasted),
        cells: answer.cells[i],
        place: number * CHUNK + i,
        source: this,
      }));
      Object.assign(this, { length: answer.total, unfiltered: answer.unfiltered });
      this.keep(number, rows, version);
      this.loaded(this, answer);
      if (answer.behind || answer.waits) setTimeout(() => this.refresh(), 300);
    } catch (error) {
      this.keep(number, rows, version);
      this.failed(this, error);
    } finally {
      this.loading.delete(number);
      this.load();
    }
  }

  keep(number, rows, version) {
    this.chunks.delete(number);
    this.chunks.set(number, { rows, version });
    if (this.chunks.size > KEPT) this.chunks.delete(this.chunks.keys().next().value);
  }
}

const inSession = (path, key = place.key) => `s/${encodeURIComponent(key)}/${path}`;

/** Return the members of a request of the timeline by their names. */
const barOf = ([number, begin, end, track, tone, method, subject, status]) => ({
  number,
  begin,
  end,
  track,
  tone,
  method,
  subject,
  status,
});

/** Return a frame with the page of an app, which is loaded when it is opened; null for another row. */
function previewOf(row) {
  const { preview } = session.open;
  if (!preview) return null;
  const how = preview === "scripts" ? "with its scripts, without network" : "without scripts and network";
  const box = make("details.preview", {}, make("summary", {}, `Preview of the app, ${how}`));
  box.addEventListener("toggle", () => {
    if (!box.open || box.querySelector("iframe")) return;
    const frame = make("iframe", { title: `App ${row.subject}` });
    frame.setAttribute("sandbox", preview === "scripts" ? "allow-scripts" : "");
    frame.src = `/api/${inSession(`rows/${row.number}/app`)}`;
    box.append(frame);
  });
  return box;
}

const source = {
  hasStrip: false,
  previewOf,
  chips: CHIPS,
  orders: ["time", "latency", "size"],
  tabs: VIEWS,
  nothing: "Nothing was recorded yet.",
  has: (view) => VIEWS[view].ofRuns || !place.key.startsWith(RUN),
  help: () => [],
  list: () => lists[place.home],
  leave: () => place.key !== null && leaveSession(),
  rows: (parameters, page) => new RemoteRows(place.key, parameters, page),
  async placeIn(found, number) {
    const answer = await guard(() => fetchJson(inSession("place"), { ...found.parameters, number }));
    return answer?.place ?? null;
  },
  seek: (found, from, step) => guard(() => fetchJson(inSession("place"), { ...found.parameters, from, step })),
  explains(error) {
    if (error.status === 401) askToken();
    else explain(error.message);
    return error.status !== 401;
  },
  /** Load a row, and `open`: everything else that its view shows. */
  async load(number) {
    const found = await guard(() => fetchJson(inSession(`rows/${number}`)));
    const row = (members) => (members ? rowOf(members, session.facts.lasted) : undefined);
    const related = found && Object.fromEntries(Object.entries(found.related).map(([name, members]) => [name, row(members)]));
    return (
      found && {
        row: row(found.row),
        open: { bodies: found.bodies, along: found.along.map(row), carriers: found.carriers.map(row), related, preview: found.preview },
      }
    );
  },
  async timeline(parts) {
    const [begin, end] = spanOf() ?? [];
    const found = await guard(() => fetchJson(inSession("timeline"), { begin, end, parts, q: queryText() }));
    return found && { ...found, bars: found.bars?.map(barOf) ?? null };
  },
  /** Load the user's cells and the views of a row, and show them until all are ready, or another row is open. */
  async views(row, shows) {
    const { open } = session;
    for (;;) {
      const found = await guard(() => fetchJson(inSession(`rows/${row.number}/views`)));
      if (!found || session.open !== open) return;
      shows(found);
      if (!found.waits) return;
      await new Promise((done) => setTimeout(done, 300));
    }
  },
  warnings: ({ read, trouble }) => [read < 1 && `Reading the file: ${Math.floor(read * 100)} %.`, trouble],
  linksTo: (sessions) => sessions.flatMap((each, i) => [i ? ", " : "", linkToSession(each.key, each.name)]),
  addressOf({ home, key, number, ...members }) {
    const folder = key === null ? [home === "runs" ? "runs" : ""] : key.startsWith(RUN) ? ["r", key.slice(RUN.length)] : ["s", key];
    return `/${[...folder, ...(number === null ? [] : [number])].map(encodeURIComponent).join("/")}${parametersOf(members)}`;
  },
  placeAt({ pathname, search }) {
    const [, folder, key, number] = pathname.split("/").map(decodeURIComponent);
    return placeOf(search, { number, home: folder === "runs" ? "runs" : START.home, key: !key ? null : folder === "r" ? RUN + key : key });
  },
  render: renderLive,
  begin: beginLive,
  setUp: setUpLive,
  start: signInWithAddress,
  keys: [
    ["i", "hold the messages that match the filter, or stop (--allow-control)", () => control.toggle()],
    ["(", "call a tool, with a form of its arguments (--allow-control)", () => call.ask()],
    ["r", "send the open request again, with changes (--allow-control)", () => control.resend()],
    [
      "d",
      "compare: press d on one session or request, then on another",
      () => (place.key === null ? source.list().choose?.() : compareRow()),
    ],
    ["1", "messages, or the list of sessions", () => show("messages", "sessions")],
    ["2", "statistics, or the list of runs", () => show("stats", "runs")],
    ["3", "capabilities", () => show("capabilities")],
    ["4", "lint findings", () => show("findings")],
    ["5", TIMELINE_HELP, () => show("timeline")],
    ["6", "context cost", () => show("context")],
    ["7", "explain: causes and next steps", () => show("explain")],
    ["q", "all sessions, or all runs", () => leaveSession()],
  ],
};
