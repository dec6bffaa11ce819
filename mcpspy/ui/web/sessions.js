// The list of sessions, live ones first.
// Owns the cursor of this list, and the session that is chosen for a comparison.

class SessionTable {
  constructor(element, { opened, compared }) {
    Object.assign(this, { element, opened, compared, sessions: [], cursor: 0, chosen: null });
    element.addEventListener("click", (event) => {
      const line = event.target.closest("a.listed");
      if (!line || event.ctrlKey || event.metaKey || event.shiftKey) return;
      event.preventDefault();
      opened(line.dataset.key);
    });
    element.addEventListener("focusin", (event) => {
      const number = [...element.querySelectorAll("a.listed")].indexOf(event.target);
      if (number >= 0) this.cursor = number;
    });
  }

  show({ sessions, total, trouble }) {
    const key = this.sessions[this.cursor]?.key;
    const hadFocus = this.element.contains(document.activeElement);
    this.sessions = sessions;
    this.cursor = Math.max(sessions.findIndex((each) => each.key === key), 0);
    const lines = sessions.map((each) => this.line(each));
    const rest = total > sessions.length ? [make("p.aside", {}, `and ${(total - sessions.length).toLocaleString("en")} older ones: use the filter`)] : [];
    const none = lines.length ? [] : [make("p.aside", {}, trouble || (byId("query").value ? "No matching sessions." : "No sessions yet. Record one with mcpspy run -- COMMAND, or mcpspy demo."))];
    const head = make("div.listed.heads", { ariaHidden: "true" }, ...["name", "server", "client", "started", "duration", "messages", "errors", "issues", "state"].map((name) => make(`span.${name}`, {}, name)));
    this.element.replaceChildren(head, ...lines, ...rest, ...none);
    if (hadFocus) this.focus();
  }

  line(each) {
    const { counts } = each;
    const number = (name, tone) => {
      const count = counts ? counts[name] : null;
      return make(`span.${name}${count ? `.${tone}` : ""}`, {}, count === null ? (each.uncounted ? "?" : "…") : count.toLocaleString("en"));
    };
    const ending = each.ending && each.ending !== "exit 0" ? each.ending : each.state;
    const line = make(
      "a.listed",
      { href: `/s/${encodeURIComponent(each.key)}` },
      make("span.name", {}, ...visible(each.name)),
      make("span.server", {}, ...visible(each.server)),
      make("span.client", {}, ...visible(each.client)),
      make("span.started", { title: each.started }, clock(each.started, 0).replace(/\.\d+.*/, "")),
      make("span.duration", {}, duration(each.lasted)),
      number("messages", "quiet"),
      number("errors", "bad"),
      number("issues", "issue"),
      make(`span.state.${each.tone}`, {}, make("i.dot"), ending),
    );
    line.dataset.key = each.key;
    line.classList.toggle("chosen", each.key === this.chosen);
    return line;
  }

  focus(by = 0) {
    const lines = this.element.querySelectorAll("a.listed");
    this.cursor = Math.min(Math.max(this.cursor + by, 0), lines.length - 1);
    lines[this.cursor]?.focus();
  }

  /** Choose a session for a comparison, or compare it with the chosen one. */
  choose() {
    const key = this.sessions[this.cursor]?.key;
    if (key === undefined) return;
    const other = this.chosen;
    this.chosen = other === null ? key : null;
    if (other !== null && other !== key) return this.compared(other, key);
    announce(this.chosen === null ? "no session chosen" : "compare with: press d on another session");
    this.show({ sessions: this.sessions, total: this.sessions.length });
    this.focus();
  }
}
