// The lists of sessions and of runs, live ones first.
// Owns the cursor of a list, and the session that is chosen for a comparison.

/** A list of links with one cursor. A subclass has the `heads` of the columns, and the `line` of an item. */
class LinkList {
  constructor(element, opened) {
    Object.assign(this, { element, opened, items: [], cursor: 0 });
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

  /** Show items, and words for none; the cursor stays on its item. */
  show(items, total, none) {
    const key = this.items[this.cursor]?.key;
    const hadFocus = this.element.contains(document.activeElement);
    this.items = items;
    this.cursor = Math.max(
      items.findIndex((each) => each.key === key),
      0,
    );
    const head = make(`div.listed.heads.${this.kind}`, { ariaHidden: "true" }, ...this.heads.map((name) => make(`span.${name}`, {}, name)));
    const lines = items.map((each) => {
      const line = make(`a.listed.${this.kind}`, { href: source.addressOf({ ...START, key: each.key }) }, ...this.line(each));
      line.dataset.key = each.key;
      line.classList.toggle("chosen", each.key === this.chosen);
      return line;
    });
    const rest = total > items.length ? [make("p.aside", {}, `and ${commas(total - items.length)} older ones`)] : [];
    this.element.replaceChildren(head, ...lines, ...rest, ...(lines.length ? [] : [make("p.aside", {}, none)]));
    if (hadFocus) this.focus();
  }

  focus(by = 0) {
    const lines = this.element.querySelectorAll("a.listed");
    this.cursor = Math.min(Math.max(this.cursor + by, 0), lines.length - 1);
    lines[this.cursor]?.focus();
  }
}

/** Return a cell with the start of an item. */
function startCell(started) {
  return make("span.started", { title: started }, clock(started, 0).replace(/\.\d+.*/, ""));
}

class SessionTable extends LinkList {
  constructor(element, { opened, compared }) {
    super(element, opened);
    Object.assign(this, {
      compared,
      chosen: null,
      kind: "session",
      heads: ["name", "server", "client", "started", "duration", "messages", "errors", "unanswered", "issues", "verdict"],
    });
  }

  showFound({ sessions, total, trouble, hint }) {
    this.show(
      sessions,
      total,
      trouble ||
        (byId("query").value ? `No matching sessions. ${hint}` : "No sessions yet. Record one with mcpspy run -- COMMAND, or mcpspy demo."),
    );
  }

  line(each) {
    const { counts } = each;
    const number = (name, tone) => {
      const count = counts ? counts[name] : null;
      return make(`span.${name}${count ? `.${tone}` : ""}`, {}, count === null ? (each.uncounted ? "?" : "…") : commas(count));
    };
    return [
      make("span.name.tagged", {}, make("span", {}, ...visible(each.name)), ...(each.origin ? [make("span.origin", {}, each.origin)] : [])),
      make("span.server", {}, ...visible(each.server)),
      make("span.client", {}, ...visible(each.client)),
      startCell(each.started),
      make("span.duration", {}, duration(each.lasted)),
      number("messages", "quiet"),
      number("errors", "bad"),
      number("unanswered", "bad"),
      number("issues", "issue"),
      make(`span.verdict.${each.tone}`, {}, make("i.dot"), make("span.brief", {}, each.brief), make("span.full", {}, each.verdict)),
    ];
  }

  /** Choose a session for a comparison, or compare it with the chosen one. */
  choose() {
    const key = this.items[this.cursor]?.key;
    if (key === undefined) return;
    const other = this.chosen;
    this.chosen = other === null ? key : null;
    if (other !== null && other !== key) return this.compared(other, key);
    announce(this.chosen === null ? "no session chosen" : "compare with: press d on another session");
    this.show(this.items, this.items.length, "");
    this.focus();
  }
}

/** The runs of hosts; each opens as one list of the rows of all its sessions. */
class RunTable extends LinkList {
  constructor(element, opened) {
    super(element, opened);
    Object.assign(this, {
      kind: "run",
      heads: ["name", "server", "client", "started", "duration", "messages", "errors", "unanswered", "state"],
    });
  }

  showFound({ runs, total }) {
    this.show(
      runs.map((run) => ({ ...run, key: `run:${run.id}` })),
      total,
      "No runs yet: no session names the process of its host (docs/runs.md).",
    );
  }

  line(run) {
    return [
      make("span.name", {}, ...visible(run.host)),
      make("span.server", {}, ...visible(`${plural(run.sessions.length, "session")}: ${run.sessions.map((each) => each.name).join(", ")}`)),
      make("span.client", {}, ...visible(run.clients.join(", "))),
      startCell(run.started),
      make("span.duration", {}, duration(run.seconds)),
      make("span.messages", {}, commas(run.messages)),
      ...["errors", "unanswered"].map((name) => make(`span.${name}${run[name] ? ".bad" : ""}`, {}, commas(run[name]))),
      make(`span.state.${run.live ? "ok" : "quiet"}`, {}, make("i.dot"), run.live ? "live" : "ended"),
    ];
  }
}
