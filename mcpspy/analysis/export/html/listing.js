// The list: only the rows in view are elements, however many rows the session has.
// Owns the window, the cursor and the columns; the page decides which rows it contains. They are an array, or an object
// with its `length`, `at` and `indexOf`, whose `at` returns undefined for a row that is not loaded yet.

// Class, heading, and the order by which a click sorts.
const COLUMNS = [
  ["at", "time", "time"],
  ["way", "", ""],
  ["track", "server", ""], // Of a run, whose rows are of several servers.
  ["method", "method", "method"],
  ["subject", "subject", "subject"],
  ["status", "status", "status"],
  ["took", "latency", "latency"],
  ["sizes", "bytes", "size"],
  ["fall", "", ""],
];
const BEYOND = 8; // Rows rendered above and below those in view.
const LONGEST = 26; // Characters of a method that are shown beside a subject.
const PRINTED = 2000; // Rows that are printed.

const TALLEST = 15_000_000; // Pixels: browsers draw no taller element. A longer list scrolls in larger steps.

const WAYS = { client: "from the client", server: "from the server", "": "" };

/** Return the name of the session that a row of a run belongs to: its stream begins with it. */
function trackOf(row, names = []) {
  return names.find((name) => row.stream === name || row.stream.startsWith(`${name}/`)) ?? "";
}

class Listing {
  constructor(element, { chosen, opened, sorted, sorts }) {
    this.element = element;
    this.tall = byId("tall");
    this.rows = [];
    this.cursor = -1;
    this.words = [];
    this.range = [0, 0];
    this.lines = new Map(); // Place → row and element, of those that are drawn.
    this.longest = 6; // Characters of the methods that were drawn beside a subject: the subjects get the rest.
    this.offset = 0; // Pixels that the list is scrolled beyond the position of its scroll bar.
    this.chosen = chosen;
    this.opened = opened;
    element.addEventListener("scroll", () => this.draw(), { passive: true });
    element.addEventListener("click", (event) => {
      const place = Number(event.target.closest(".row")?.dataset.place ?? -1);
      if (place >= 0) this.opened(this.rows.at(place), place);
    });
    new ResizeObserver(() => this.measure()).observe(element);
    this.heads = new Map();
    this.own = 0; // The user's columns (docs/scripting.md), after the others.
    byId("columns").append(
      ...COLUMNS.map(([name, words, order]) => {
        if (!sorts(order)) return make(`span.${name}`, {}, words);
        const head = make(`button.${name}`, { type: "button", title: `Sort by ${words}` }, words);
        head.addEventListener("click", () => sorted(order));
        this.heads.set(order, head);
        return head;
      }),
    );
  }

  /** Add the user's columns, whose cells are those of a row. */
  addColumns(names) {
    if (this.own === names.length) return;
    for (const head of byId("columns").querySelectorAll(".own")) head.remove();
    byId("columns").append(...names.map((name) => make("span.own", { title: name }, ...visible(name))));
    this.own = names.length;
  }

  /** Replace the rows; keep the position of the reader. */
  show(rows, words, range) {
    const row = this.current;
    [this.rows, this.words, this.range] = [rows, words, range];
    this.cursor = row ? rows.indexOf(row) : -1;
    this.measure();
    if (this.cursor >= 0) this.reveal();
  }

  measure() {
    this.height = parseFloat(getComputedStyle(this.element).getPropertyValue("--row")) || 28;
    this.tall.style.height = `${Math.min(this.rows.length * this.height, TALLEST)}px`;
    this.drawn = null;
    this.lines.clear();
    this.draw();
  }

  select(row) {
    this.go(this.rows.indexOf(row));
  }

  /** Make the row at a place the current one. */
  go(place) {
    this.cursor = place;
    this.reveal();
    this.drawn = null;
    this.draw();
  }

  reveal() {
    const [top, shown] = [this.cursor * this.height, this.element.clientHeight];
    if (this.cursor < 0 || !shown) return;
    const at = this.element.scrollTop * this.step;
    if (top < at) this.element.scrollTop = top / this.step;
    else if (top + this.height > at + shown) this.element.scrollTop = (top + this.height - shown) / this.step;
  }

  /** Pixels of the list for each pixel of its scroll bar: 1, unless the list is too tall for the browser. */
  get step() {
    const [whole, shown] = [this.rows.length * this.height, this.element.clientHeight];
    return whole <= TALLEST ? 1 : (whole - shown) / (TALLEST - shown);
  }

  /** Move the cursor by a number of rows. */
  move(by) {
    if (!this.rows.length) return;
    const from = this.cursor < 0 ? (by > 0 ? -1 : this.rows.length) : this.cursor;
    const place = Math.min(Math.max(from + by, 0), this.rows.length - 1);
    this.chosen(this.rows.at(place), place);
  }

  /** The current row; undefined if there is none, or if it is not loaded. */
  get current() {
    return this.cursor < 0 ? undefined : this.rows.at(this.cursor);
  }

  get inView() {
    return Math.max(1, Math.floor(this.element.clientHeight / this.height) - 1);
  }

  draw(isPrinting = false) {
    const { scrollTop, clientHeight } = this.element;
    const top = scrollTop * this.step;
    this.offset = top - scrollTop;
    const first = isPrinting ? 0 : Math.max(0, Math.floor(top / this.height) - BEYOND);
    const last = Math.min(isPrinting ? PRINTED : Math.ceil((top + clientHeight) / this.height) + BEYOND, this.rows.length);
    const drawn = `${first} ${last} ${this.offset}`;
    if (drawn === this.drawn) return;
    this.drawn = drawn;
    const longest = this.longest;
    const lines = new Map();
    for (let place = first; place < last; place++) {
      const row = this.rows.at(place);
      const known = this.lines.get(place);
      const element = known && known.row === row ? known.element : this.line(row, place);
      element.style.top = `${place * this.height - this.offset}px`;
      element.setAttribute("aria-selected", String(place === this.cursor));
      lines.set(place, { row, element });
      if (row?.subject) this.longest = Math.max(this.longest, Math.min(row.method.length, LONGEST));
    }
    this.lines = lines;
    if (longest !== this.longest || !this.measured) this.element.parentElement.style.setProperty("--method", `${this.longest + 1}ch`);
    this.measured = true;
    const elements = [...lines.values()].map(({ element }) => element);
    this.place(elements);
    const current = lines.get(this.cursor)?.element;
    if (current) this.element.setAttribute("aria-activedescendant", current.id);
    else this.element.removeAttribute("aria-activedescendant");
    highlight("row-found", elements, this.words);
  }

  /** Make the elements those of the list, in their order; those that are there already stay where they are. */
  place(elements) {
    const kept = new Set(elements);
    for (const element of [...this.tall.children]) if (!kept.has(element)) element.remove();
    let next = this.tall.firstChild;
    for (const element of elements) {
      if (element === next) next = next.nextSibling;
      else this.tall.insertBefore(element, next);
    }
  }

  line(row, place) {
    const line = row ? this.cells(row) : make("div.row", { role: "option", ariaLabel: "loading" });
    line.dataset.place = place;
    line.setAttribute("aria-setsize", String(this.rows.length));
    line.setAttribute("aria-posinset", String(place + 1));
    return line;
  }

  cells(row) {
    const way = WAYS[row.side];
    const track = trackOf(row, session.facts.tracks);
    const took = row.latency !== null ? duration(row.latency) : row.kind === "request" && row.tone === "open" ? "…" : "";
    const sizes = row.kind === "request" ? `${size(row.size)} ${row.answer >= 0 ? size(row.answerSize) : "-"}` : size(row.size || "");
    const bar = make(`i.${row.tone}`);
    const [begin, end] = this.range;
    const share = (at) => Math.min(Math.max((at - begin) / (end - begin || 1), 0), 1) * 100;
    bar.style.left = `${share(row.at)}%`;
    bar.style.width = `${share(row.last) - share(row.at)}%`;
    const line = make(
      `div.row.${row.tone}`,
      { id: `row-${row.number}`, role: "option" },
      make("span.at", {}, moment(row.at)),
      make("span.way", way ? { title: way, role: "img", ariaLabel: way } : {}, arrow(row.side)),
      track ? make("span.track", { title: track }, ...visible(track)) : null,
      make("span.method", {}, ...visible(row.method)),
      make("span.subject", { title: row.subject }, ...visible(row.subject)),
      make("span.status", { title: row.status }, ...visible(row.status)),
      make("span.took", {}, took),
      make("span.sizes", {}, sizes),
      make("span.fall", { "aria-hidden": "true" }, bar),
    );
    for (let i = 0; i < this.own; i++) line.append(this.ownCell(row.cells?.[i] ?? ["", null]));
    return line;
  }

  ownCell(cell) {
    const made = make("span.own", { title: cell[0] });
    made.append(piece(cell));
    return made;
  }

  /** Mark the column that sorts, and its direction. */
  markSort(order, isDown) {
    for (const [each, head] of this.heads) {
      head.dataset.sort = each === order ? (isDown ? "down" : "up") : "";
      head.setAttribute("aria-pressed", String(each === order));
    }
  }
}
