// Control of a live session: what is held, what is done with it, and requests that are sent.

const control = {
  state: null,

  /** Send an order; announce `done`, or why the session refuses it. */
  async order(fields, done) {
    const response = await fetch(`/api/${inSession("control")}`, { method: "POST", body: JSON.stringify(fields) });
    const answer = await response.json();
    announce(response.ok ? done : answer.error);
    return response.ok ? answer : null;
  },

  /** Show the state that an event brought; null if the page may only read, or the session is over. */
  show(state) {
    const key = JSON.stringify(state, (name, value) => (name === "left" ? undefined : value));
    if (key === this.key) return;
    this.key = key;
    this.state = state;
    const box = byId("held");
    box.hidden = !state?.open;
    if (box.hidden) return box.replaceChildren();
    box.replaceChildren(this.bar(state), ...(state.held.length ? [make("ul", {}, ...state.held.map((held) => this.item(held)))] : []));
  },

  bar({ query, restarts, held }) {
    const toggle = make(
      "button",
      { type: "button", id: "hold", "aria-pressed": String(query !== null) },
      query === null ? "Hold" : "Stop holding",
    );
    toggle.addEventListener("click", () => this.toggle());
    const words = query === null ? "Messages pass." : query ? `Holding messages that match ${query}.` : "Holding all messages.";
    const parts = [toggle, make("span", { role: "status" }, `${words}${held.length ? ` ${plural(held.length, "message")} held.` : ""}`)];
    if (held.length > 1) parts.push(button("Release all", "", () => this.order({ order: "release all" }, "released")));
    if (restarts) parts.push(button("Restart server", "", () => this.order({ order: "restart" }, "the server is restarted")));
    return make("div.bar", {}, ...parts);
  },

  item(held) {
    const { ticket } = held;
    const decide = (order, done) => () => this.order({ order, ticket }, done);
    const actions = [
      button("Release", "", decide("release", "released")),
      button("Edit", "", () => this.edit(held)),
      button("Drop", "", decide("drop", "dropped")),
      ...(held.request ? [button("Answer with an error", "", () => this.answer(held))] : []),
    ];
    const who = `${held.side === "client" ? "to the server" : "to the client"}, held by ${held.by || "a viewer"}`;
    const differences = make("pre", { hidden: true });
    if (held.side === "server") this.compare(held, differences);
    return make("li", {}, make("strong", {}, ...visible(held.name)), make("span.aside", {}, who), ...actions, differences);
  },

  /** Show how a held message differs from the lockfile, if it does. */
  async compare({ ticket }, box) {
    const found = await guard(() => fetchJson(inSession(`held/${ticket}`)));
    if (!found?.differences.length) return;
    box.replaceChildren(...visible(found.differences.join("\n"), true));
    box.hidden = false;
  },

  /** Hold what the filter of the page matches, or stop. */
  toggle() {
    if (!this.state?.open) return announce("the page cannot reach the session");
    const query = this.state.query === null ? queryText() : null;
    return this.order({ order: "hold", query }, query === null ? "held messages were released" : "messages are held");
  },

  async edit({ ticket, name }) {
    const found = await guard(() => fetchJson(inSession(`held/${ticket}`)));
    if (found)
      openEditor(`Edit ${name}`, onLines(found.text), "Forward", (text) =>
        this.order({ order: "edit", ticket, text }, "forwarded with the change"),
      );
  },

  answer({ ticket, name }) {
    openEditor(`Answer ${name} with an error`, "refused by a viewer", "Answer", (text) =>
      this.order({ order: "answer", ticket, text }, "answered"),
    );
  },

  /** Send the open request again, with or without a change. */
  resend() {
    const row = openRow && (openRow.kind === "request" ? openRow : session.requestOf(openRow));
    if (!this.state?.open || !row) return announce(this.state?.open ? "open a request first" : "the session cannot be reached");
    openEditor("Send again", onLines(session.body(row.body)), "Send", (text) =>
      this.order({ order: "request", text, stream: row.stream || null }, "sent: its response appears in the list"),
    );
  },
};

/** Return JSON on several lines; text that is not JSON, or would change, as it is. */
function onLines(text) {
  try {
    const value = JSON.parse(text);
    return JSON.stringify(value) === text ? JSON.stringify(value, null, 2) : text;
  } catch {
    return text;
  }
}

/** Edit a text; call `done` with it. The dialog stays open if the session refuses it. */
function openEditor(title, text, label, done) {
  const dialog = byId("editor");
  const field = make("textarea", { rows: 16, spellcheck: false, ariaLabel: title });
  field.value = text;
  const form = make(
    "form",
    { method: "dialog" },
    field,
    make(
      "div.bar",
      {},
      make("button", { type: "submit" }, label),
      button("Cancel", "", () => dialog.close()),
    ),
  );
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (await done(field.value)) dialog.close();
  });
  dialog.replaceChildren(make("h2", {}, title), form);
  dialog.showModal();
  field.focus();
}
