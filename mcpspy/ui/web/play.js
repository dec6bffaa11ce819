// A replay or a mock of the session that is shown: what was chosen, its counts, and a part of its lists.
// The engine runs beside the server; the page gets data and sends orders.

const PARTS_OF_LIST = 100; // Rows of one list that are shown at once.

const play = {
  state: null,
  first: null, // The first step that is shown; null to follow the replay.
  key: "",

  /** Send an order; announce `done`, or the reason of a refusal. */
  async order(fields, done = "") {
    const response = await fetch(`/api/${inSession("play")}`, { method: "POST", body: JSON.stringify(fields) });
    const answer = await response.json();
    if (!response.ok || done) announce(response.ok ? done : answer.error);
    return response.ok ? "" : answer.error;
  },

  /** Show the state that an event brought; undefined if the page may not play the session. */
  show(state) {
    const key = JSON.stringify(state ?? null);
    if (key === this.key) return;
    if (state?.kind !== this.state?.kind) this.first = null;
    this.key = key;
    this.state = state ?? null;
    const box = byId("play");
    box.hidden = !state;
    if (!state) return box.replaceChildren();
    if (!state.kind) return box.replaceChildren(this.start());
    const [head, lists] =
      state.kind === "replay" ? [this.replayHead(state), ["steps"]] : [this.mockHead(state), ["requests", "interactions"]];
    const kept = lists.map((name) => byId(`play-${name}`) ?? make("div.scroll", { id: `play-${name}` }));
    box.replaceChildren(...head, ...kept);
    for (const name of lists) this.load(name);
  },

  start() {
    return make(
      "div.bar",
      {},
      button("Replay", "send the requests of this session to a server, and compare", () => this.ask("replay")),
      button("Serve", "answer clients in place of the server of this session", () => this.ask("serve")),
    );
  },

  replayHead(state) {
    const counts = Object.entries(state.counts).map(([words, count]) =>
      make(`span.badge.${toneOf(words)}`, {}, `${commas(count)} ${words}`),
    );
    const progress = make("progress", { max: Math.max(state.total, 1), value: state.done, ariaLabel: "requests that are over" });
    const actions = state.over
      ? [
          button("Save", "save the new session in the folder", () => this.order({ order: "save" })),
          button("Close", "", () => this.order({ order: "close" })),
        ]
      : [
          button(state.paused ? "Continue" : "Pause", "", () => this.order({ order: state.paused ? "resume" : "pause" })),
          button("Step", "send one request, then pause", () => this.order({ order: "step" })),
          button("Stop", "", () => this.order({ order: "stop" })),
        ];
    const words = `Replay ${state.phase}, ${commas(state.done)} of ${plural(state.total, "request")}`;
    return [make("div.bar", {}, make("strong", { role: "status" }, words), progress, ...counts, ...actions), ...this.ending(state)];
  },

  mockHead(state) {
    const counts = [plural(state.requests, "request"), `${commas(state.misses)} not recorded`, plural(state.clients, "client")];
    return [
      make(
        "div.bar",
        {},
        make("strong", { role: "status" }, `Mock ${state.phase}`),
        make("code", {}, ...visible(state.url)),
        button("Copy URL", "", () => copyText(state.url)),
        button("Copy command", state.command, () => copyText(state.command)),
        ...counts.map((words) => make("span.badge", {}, words)),
        button("Stop", "", () => this.order({ order: "close" })),
      ),
      ...this.ending(state),
    ];
  },

  ending(state) {
    const lines = [...state.ending, ...(state.message ? [state.message] : [])];
    return lines.map((text) => make("p.aside", {}, ...visible(text)));
  },

  /** Load the part of a list that is shown; only the last request of several counts. */
  async load(name) {
    const asked = Symbol(name);
    this[name] = asked;
    const { state } = this;
    const first = this.firstOf(name, state);
    const found = await guard(() => fetchJson(inSession(`play/${name}`), { first, count: PARTS_OF_LIST }));
    const box = byId(`play-${name}`);
    if (!found || !box || this[name] !== asked) return;
    const [heads, lineOf] = LISTS[name];
    const turn = (words, to) => button(words, "", () => this.turn(to));
    const more = [
      ...(name === "steps" && first > 0 ? [turn("Earlier", Math.max(first - PARTS_OF_LIST, 0))] : []),
      ...(name === "steps" && first + found.rows.length < found.total ? [turn("Later", first + PARTS_OF_LIST)] : []),
      ...(name === "steps" && this.first !== null ? [turn("Follow", null)] : []),
    ];
    const shown =
      found.total > found.rows.length ? `${commas(first + 1)} to ${commas(first + found.rows.length)} of ${commas(found.total)}` : "";
    const isAtEnd = box.scrollTop + box.clientHeight >= box.scrollHeight - 4;
    const list = table(heads, found.rows.map(lineOf));
    box.replaceChildren(...(shown || more.length ? [make("p.aside", {}, shown, " ", ...more)] : []), list);
    if (isAtEnd && name === "requests") box.scrollTop = box.scrollHeight;
  },

  /** Return the first row of a list that is shown: the chosen one, the first difference at the end, or else the newest. */
  firstOf(name, state) {
    if (name === "interactions") return 0;
    if (name === "requests") return Math.max(state.requests - PARTS_OF_LIST, 0);
    const newest = state.over ? (state.difference ?? 0) : (state.next ?? state.done);
    return this.first ?? Math.max(newest - 3, 0);
  },

  turn(first) {
    this.first = first;
    this.load("steps");
  },

  /** Ask for the target of a replay, or for the port of a mock; the dialog stays open with the reason of a refusal. */
  async ask(what) {
    const found = await guard(() => fetchJson(inSession("play")));
    if (!found) return;
    const dialog = byId("editor");
    const [fields, read] = what === "replay" ? replayFields(found) : serveFields(found);
    const wrong = make("p.bad", { role: "alert" });
    const go = make("button", { type: "submit" }, what === "replay" ? "Replay" : "Serve");
    const cancel = button("Cancel", "", () => dialog.close());
    const form = make("form.fields", { method: "dialog" }, ...fields, wrong, make("div.bar", {}, go, cancel));
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      go.disabled = true;
      wrong.textContent = await this.order({ order: what, ...read() });
      go.disabled = false;
      if (!wrong.textContent) dialog.close();
    });
    dialog.replaceChildren(make("h2", {}, what === "replay" ? "Replay this session" : "Serve this session"), form);
    dialog.showModal();
    form.querySelector("select, input").focus();
  },
};

const LISTS = {
  steps: [
    ["outcome", "request", "was", "now", "what differs"],
    (step) => {
      const words = `${step.words}${step.more ? ` (+${step.more})` : ""}`;
      const ignore =
        step.number !== null && step.state === "different"
          ? [button("Ignore", "ignore this value from here on", () => play.order({ order: "ignore", number: step.number }))]
          : [];
      const tone = toneOf(step.words);
      return line(
        cell(words, tone),
        cell(visible(step.about), "what"),
        figure(step.was),
        figure(step.now),
        cell([...visible(step.reason), " ", ...ignore], "what"),
      );
    },
  ],
  requests: [
    ["client", "request", "got"],
    (each) =>
      line(figure(each.client ?? ""), cell(visible(each.about), "what"), cell(visible(each.got), each.state === "missed" ? "bad" : "what")),
  ],
  interactions: [
    ["#", "recorded", "arguments", "response", "asked", "left"],
    (each) =>
      line(
        figure(each.number),
        cell(visible(each.about), "what"),
        cell(visible(each.arguments), "what"),
        cell(each.outcome),
        figure(each.asked || "·"),
        figure(each.left ?? ""),
      ),
  ],
};

/** Return the tone of an outcome of a replay. */
function toneOf(words) {
  const tones = { same: "ok", BREAKING: "bad", breaking: "bad", "no answer": "bad", different: "open", "not sent": "issue" };
  return tones[words] ?? "quiet";
}

function labelled(words, field) {
  return make("label", {}, make("span.aside", {}, words), field);
}

function textField(value, placeholder) {
  return make("input", { type: "text", value, placeholder, autocomplete: "off", spellcheck: false });
}

/** Return the fields of a replay, and what reads them. */
function replayFields(found) {
  const choice = make(
    "select",
    {},
    ...found.servers.map((each, place) => make("option", { value: String(place) }, `${each.title}: ${each.shown}`)),
    make("option", { value: "" }, "another command or URL"),
  );
  const server = textField("", "command, or http:// URL");
  const secrets = textField(found.secrets.map((each) => `${each}=`).join(" "), "NAME=VALUE");
  const ignored = textField(found.ignored, "/result/**/time; tools/call clock /result");
  const pause = make("input", { type: "checkbox" });
  const other = labelled("command or URL", server);
  other.hidden = true;
  choice.addEventListener("change", () => (other.hidden = choice.value !== ""));
  const fields = [labelled("against", choice), other, ...(found.secrets.length ? [labelled("redacted values", secrets)] : [])];
  const read = () => ({
    ...(choice.value === "" ? { server: server.value || " " } : { against: Number(choice.value) }),
    secrets: secrets.value,
    ignored: ignored.value,
    pause: pause.checked,
  });
  return [[...fields, labelled("ignored values", ignored), labelled("pause before the first request", pause)], read];
}

/** Return the fields of a mock, and what reads them. */
function serveFields(found) {
  const port = textField(found.port, "0");
  const server = textField("", found.real);
  const fields = [
    labelled("port of 127.0.0.1 (0: a free one)", port),
    labelled("real server for requests that were not recorded (command or URL; may be empty)", server),
  ];
  return [fields, () => ({ port: port.value, server: server.value })];
}
