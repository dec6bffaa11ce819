// Calls from a form: the choice of a server and a tool, the fields, and the call. The server keeps the form and judges it.

const call = {
  allowed: false,
  number: null,
  target: null,
  waits: 0, // Fields are sent when the user pauses.
  isAnyway: false,
  hasTried: false,

  /** Send an order; return the answer, or show why it is refused, and return null. */
  async order(fields) {
    const response = await fetch("/api/call", { method: "POST", body: JSON.stringify(fields) });
    const answer = await response.json();
    if (!response.ok) this.say(answer.error, "bad");
    return response.ok ? answer : null;
  },

  say(words, tone = "") {
    const line = byId("call-line");
    line.className = tone;
    line.replaceChildren(...visible(words));
  },

  /** Show the dialog with new content, below a title. The buttons stay in view, below them what is wrong. */
  show(title, ...content) {
    const dialog = byId("call");
    const bar = content.pop();
    const foot = make("div.foot", {}, bar, make("p", { id: "call-line", role: "status" }));
    dialog.replaceChildren(make("h2", {}, ...visible(title)), ...content, foot);
    if (!dialog.open) dialog.showModal();
    dialog.querySelector("select, input, textarea, button")?.focus();
  },

  bar: (...buttons) =>
    make(
      "div.bar",
      {},
      ...buttons,
      button("Close", "Esc", () => byId("call").close()),
    ),

  async ask() {
    if (!this.allowed) return announce("the page can only read: start mcpspy web with --allow-control");
    const found = await guard(() => fetchJson("call", { session: place.key ?? "" }));
    if (found) found.call ? this.opened(found) : this.servers(found);
  },

  /** Show the servers, each with its command. Nothing is started before a click. */
  servers({ live, servers }) {
    const options = servers.map((each, i) => make("option", { value: String(i) }, ...visible(each.title)));
    if (live) options.unshift(make("option", { value: "live" }, "this live session"));
    if (!options.length)
      return this.show("Call a tool", make("p", {}, "No server: no host here has one, and no call is saved."), this.bar());
    const choice = make("select", {}, ...options);
    const command = make("p.code", {});
    const start = button("Start", "", async () => {
      start.disabled = true;
      this.say(choice.value === "live" ? "" : "starting or connecting …");
      const isLive = choice.value === "live";
      const which = isLive ? { live: true } : { server: Number(choice.value) };
      const answer = await this.order({ order: "open", session: place.key ?? "", ...which });
      start.disabled = false;
      if (answer) this.opened(answer);
    });
    const explain = () => {
      const server = servers[Number(choice.value)];
      const words = server
        ? `A new session. This ${server.starts ? "starts" : "connects to"}: ${server.shown}`
        : "Calls are sent into this live session.";
      command.replaceChildren(...visible(words));
      start.textContent = server ? (server.starts ? "Start" : "Connect") : "Choose a tool";
    };
    choice.addEventListener("change", explain);
    explain();
    this.show("Call a tool", make("div.fields", {}, labelled("server", choice), command), this.bar(start));
  },

  /** Show what the server lists; words limit the list. */
  opened(answer) {
    this.number = answer.call;
    this.answer = answer;
    if (answer.chosen !== undefined) return this.open(answer.chosen);
    const words = textField("", "name of a tool, prompt or resource");
    const list = make("select", { size: 10 });
    const find = () => {
      const typed = words.value.toLowerCase().split(/\s+/);
      const found = answer.targets
        .map((each, i) => [each, i])
        .filter(([each]) => typed.every((word) => `${each.name} ${each.title} ${each.noun}`.toLowerCase().includes(word)));
      list.replaceChildren(
        ...found.slice(0, 500).map(([each, i]) => {
          const more = [each.noun === "tool" ? "" : each.noun, each.title].filter(Boolean).join(", ");
          return make("option", { value: String(i) }, ...visible(more ? `${each.name} (${more})` : each.name));
        }),
      );
      list.selectedIndex = found.length ? 0 : -1;
    };
    const open = () => list.value !== "" && this.open(Number(list.value));
    words.addEventListener("input", find);
    for (const each of [words, list])
      each.addEventListener("keydown", (event) => {
        if (event.key !== "Enter") return;
        event.preventDefault();
        open();
      });
    list.addEventListener("dblclick", open);
    find();
    const end = button("End the server", "", async () => (await this.order({ order: "close", call: this.number })) && byId("call").close());
    const notes = answer.notes.map((note) => make("p.aside", {}, ...visible(note)));
    const content = make("div.fields", {}, this.where(), labelled("name", words), labelled("tools, prompts and resources", list), ...notes);
    this.show("Call a tool", content, this.bar(button("Open the form", "", open), ...(answer.server ? [end] : [])));
  },

  where() {
    const { server } = this.answer;
    const words = server ? `A new session: ${server.starts ? "started" : "connected to"} ${server.shown}` : "Sent into this live session.";
    return make("p.aside", {}, ...visible(words));
  },

  async open(target) {
    this.target = target;
    const state = await this.order({ order: "form", call: this.number, target });
    if (state) this.form(state);
  },

  form(state) {
    this.isAnyway = false;
    this.hasTried = false; // From the first try on, missing arguments are marked.
    this.fields = state.fields.map((field, i) => this.field(field, i));
    this.json = make("textarea", { rows: 8, spellcheck: false, ariaLabel: "arguments as JSON" });
    this.json.addEventListener("input", () => this.edited({ json: this.json.value }));
    this.send = button("Call", "", () => this.begin());
    this.stop = button("Cancel the call", "", () => this.order({ order: "cancel", call: this.number }));
    this.stop.hidden = true;
    const hints = state.hints.length ? [make(`p${state.destructive ? ".bad" : ".aside"}`, {}, state.hints.join(", "))] : [];
    const more = state.more ? [make("p.aside", {}, `${commas(state.more)} more arguments: edit them as JSON.`)] : [];
    const title = state.title ? [make("p", {}, make("b", {}, ...visible(state.title)))] : [];
    const about = state.about ? [make("p.text", {}, ...visible(state.about, true))] : [];
    if (!state.fields.length && !state.more) about.push(make("p.aside", {}, "No arguments."));
    this.show(
      `${state.noun} ${state.name}`,
      make("div.fields", {}, this.where(), ...hints, ...title, ...about, ...this.fields.map((each) => each.box), ...more),
      make("details", { open: state.more > 0 }, make("summary", {}, "Arguments as JSON"), this.json),
      this.bar(
        this.send,
        this.stop,
        button("Another tool", "", () => this.opened({ ...this.answer, chosen: undefined })),
      ),
    );
    if (!state.fields.length) this.send.focus();
    this.renew(state, true);
  },

  /** Return a field: its box, and functions to set its text, and what is wrong with it. */
  field(field, i) {
    const words = make("span.aside", { id: `call-words-${i}` });
    const name = [...visible(field.name), ...(field.needed ? [make("b", {}, " (required)")] : [])];
    const changed = (text) => this.edited({ texts: { [i]: text } });
    let input;
    let box;
    if (field.kind === "boolean") {
      const radios = ["", ...field.choices.keys()].map((value) =>
        make("input", { type: "radio", name: `call-${i}`, value: String(value) }),
      );
      const labels = radios.map((radio, n) => make("label", {}, radio, ` ${n ? field.choices[n - 1] : "not set"}`));
      for (const radio of radios) radio.addEventListener("change", () => changed(radio.value));
      box = make("fieldset", {}, make("legend", {}, ...name), make("div.bar", {}, ...labels), words);
      input = box;
      return { box, words, field, input, put: (text) => (radios.find((radio) => radio.value === text).checked = true) };
    }
    if (field.choices.length) {
      const options = field.choices.map((each, n) => make("option", { value: String(n) }, ...visible(each)));
      input = make("select", {}, make("option", { value: "" }, "not set"), ...options);
      input.addEventListener("change", () => changed(input.value));
    } else {
      input = field.kind === "json" ? make("textarea", { rows: 2, spellcheck: false, placeholder: "JSON" }) : textField("", "");
      if (field.kind === "number") input.inputMode = "decimal";
      input.addEventListener("input", () => changed(input.value));
    }
    input.setAttribute("aria-describedby", words.id);
    input.required = field.needed;
    box = make("label", {}, make("span", {}, ...name), input, words);
    return { box, words, field, input, put: (text) => (input.value = text) };
  },

  /** Send a change when the user pauses, with those before it. */
  edited(change) {
    this.isAnyway = false;
    this.changes = change.json === undefined ? { texts: { ...this.changes?.texts, ...change.texts } } : change;
    clearTimeout(this.waits);
    this.waits = setTimeout(() => this.flush(), 200);
  },

  async flush() {
    clearTimeout(this.waits);
    const { changes } = this;
    this.changes = null;
    const state = await this.order({ order: "form", call: this.number, target: this.target, ...changes });
    if (state && !this.changes) this.renew(state, changes?.json !== undefined);
    return state;
  },

  /** Show the state of the form: what is wrong at each field, and the texts and the JSON, except where the user types. */
  renew(state, putsTexts) {
    this.state = state;
    state.fields.forEach((field, i) => {
      const { words, input, put } = this.fields[i];
      if (putsTexts) put(field.text);
      const isMissing = field.error === "required" && !this.hasTried;
      const wrong = isMissing ? "" : field.error;
      input.setAttribute("aria-invalid", String(Boolean(wrong)));
      const elsewhere = field.elsewhere ? "set in the JSON" : "";
      const about = [elsewhere, field.words, field.about].filter(Boolean).join(" · ");
      words.replaceChildren(...(wrong ? [make("span.bad", {}, ...visible(wrong)), " · "] : []), ...visible(about));
    });
    if (document.activeElement !== this.json) this.json.value = state.json;
    this.send.textContent = "Call";
    this.say(state.others.join("; "), "aside");
  },

  async begin() {
    const isAnyway = this.isAnyway;
    const state = await this.flush();
    if (!state) return;
    if (state.wrong && !(isAnyway && !state.fatal)) {
      this.isAnyway = this.hasTried = true;
      this.renew(state, false);
      if (!state.fatal) this.send.textContent = "Call anyway";
      this.say(state.fatal ? "Correct the marked fields." : "The schema does not allow these arguments.", "bad");
      this.fields
        .find((_, i) => state.fields[i].error)
        ?.box.querySelector("input, select, textarea")
        ?.focus();
      return;
    }
    this.isAnyway = false;
    const order = { order: "send", call: this.number, target: this.target, anyway: isAnyway };
    if (await this.order(order)) this.follow();
  },

  /** Show the progress of the call; then go to its row. */
  async follow() {
    const { number } = this;
    this.send.disabled = true;
    this.stop.hidden = false;
    for (;;) {
      const now = await guard(() => fetchJson(`call/${number}`));
      if (!now?.busy) {
        this.send.disabled = false;
        this.stop.hidden = true;
        if (!now || now.error) return this.say(now?.error ?? "", "bad");
        byId("call").close();
        return now.session === place.key
          ? go({ view: "messages", number: now.number, q: "" })
          : goInto(now.session, { number: now.number });
      }
      this.say(`waiting for the response, ${now.seconds} s${now.progress ? `: ${now.progress}` : ""}`);
      await new Promise((done) => setTimeout(done, 200));
    }
  },
};
