// The timeline: concurrency and latency per part of a window of time, and the requests one by one if they are few.
// One track per session of a run. What is drawn was counted before, so that a million messages are a few hundred numbers.

const TONES = ["dim", "quiet", "ok", "open", "issue", "bad"]; // Later tones are drawn on top, so one error among thousands is visible.
const PART = 4; // Pixels of a part.
const STRIP = 46; // Height of concurrency and of latency.
const BAR = 9; // Height of a request, with the gap below it.
const MOST = 10; // Requests above each other in one track.
const HANDLE = 5; // Pixels that the pointer moves before it selects a range.
const SLOWEST = 100; // Seconds at the top of the latency, which is logarithmic from 0.1 ms.
const TIMELINE_HELP = "timeline; there, arrows select, + and - zoom, [ and ] move, 0 shows everything";

/** Return an SVG element; attributes are numbers and words of this page, never text of a peer. */
function draw(name, attributes, ...children) {
  const element = document.createElementNS(byId("shapes").namespaceURI, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, String(value));
  element.append(...children);
  return element;
}

/** The numbers of errors and of unanswered requests, each after a separator. */
function wrong(failed, unanswered, separator) {
  const words = [failed && plural(failed, "error"), unanswered && `${commas(unanswered)} unanswered`];
  return words
    .filter(Boolean)
    .map((each) => separator + each)
    .join("");
}

const total = (counts) => counts.reduce((all, each) => all + each, 0);

class TimelineView {
  constructor(element, { selected, opened, moved, load }) {
    Object.assign(this, { element, selected, opened, moved, load, found: null, cursor: null, drag: null, version: 0, isCompact: false });
    this.plots = make("div.plots", {
      tabIndex: 0,
      role: "slider",
      ariaLabel: "Timeline: arrows select, Enter opens, plus and minus zoom, 0 shows everything",
      ariaValueMin: "0",
    });
    this.says = make("output.aside", {});
    this.hint = make("div.hint", { hidden: true });
    this.whole = button("Whole session", "0", () => moved(null));
    this.tools = make(
      "div.bar.tools",
      {},
      button("Zoom in", "+", () => this.zoom(0.5)),
      button("Zoom out", "-", () => this.zoom(2)),
      button("Earlier", "[", () => this.shift(-0.5)),
      button("Later", "]", () => this.shift(0.5)),
      this.whole,
      this.says,
    );
    element.append(this.tools, this.plots, this.hint);
    new ResizeObserver(() => !element.hidden && this.refresh()).observe(element);
    this.plots.addEventListener("pointerdown", (event) => this.pressed(event));
    this.plots.addEventListener("pointermove", (event) => this.pointed(event));
    this.plots.addEventListener("pointerup", (event) => this.released(event));
    this.plots.addEventListener("pointercancel", () => this.endDrag());
    this.plots.addEventListener("pointerleave", () => (this.hint.hidden = true));
    this.plots.addEventListener("wheel", (event) => this.wheeled(event), { passive: false });
    this.plots.addEventListener("keydown", (event) => this.key(event));
  }

  get width() {
    return Math.max(this.plots.clientWidth, 100);
  }

  /** Load the window again: it was moved, resized, or rows were added. */
  async refresh() {
    const version = ++this.version;
    const found = await this.load(Math.floor(this.width / PART));
    if (!found || version !== this.version) return;
    this.found = found;
    this.draw();
    if (found.behind) setTimeout(() => version === this.version && this.refresh(), 300);
  }

  clear() {
    this.version++;
    this.found = this.cursor = null;
    this.plots.replaceChildren();
    this.says.textContent = "";
  }

  /** Draw it in another width of CSS. */
  fit(width) {
    this.plots.style.width = width;
    if (this.found) this.draw();
  }

  x(at) {
    const { begin, end } = this.found;
    return ((at - begin) / (end - begin)) * this.width;
  }

  time(x) {
    const { begin, end } = this.found;
    return begin + (x / this.width) * (end - begin);
  }

  draw() {
    const { tracks, begin, end, whole } = this.found;
    const names = session.facts.tracks?.length ? session.facts.tracks : [""];
    this.items = [];
    this.element.classList.toggle("compact", this.isCompact);
    this.whole.hidden = this.isCompact && end - begin >= whole;
    const most = Math.max(1, ...tracks.flatMap((track) => track.peak));
    const figures = tracks.map((track, number) => this.track(track, number, names[number] ?? "", most));
    this.plots.replaceChildren(...figures, this.axis());
    this.items.sort((one, other) => one.at - other.at);
    const peak = tracks.length === 1 ? `, peak concurrency ${most}` : "";
    this.summary = `${moment(begin)} to ${moment(end)} s: ${plural(total(tracks.map((track) => total(track.began))), "request")}${peak}`;
    this.mark();
  }

  track(track, number, name, most) {
    const { width } = this;
    const bars = this.found.bars?.filter((bar) => bar.track === number) ?? null;
    const top = this.isCompact && bars !== null ? 4 : STRIP * 2 + 8; // A compact one has either bars or columns.
    const foot = top + (bars === null ? 0 : this.pack(bars, top)) * BAR;
    const ticks = this.found.ticks ?? [];
    const height = foot + (ticks.length ? 8 : 0);
    const part = width / track.peak.length;
    const latencyOf = (seconds) => (seconds > 0 ? Math.min(Math.max((Math.log10(seconds) + 4) / (Math.log10(SLOWEST) + 4), 0.02), 1) : 0);
    const columns = (values, bottom, tall) =>
      values
        .map((value, i) =>
          value > 0
            ? `M${(i * part).toFixed(1)} ${bottom}v${(-Math.max(tall(value, i) * STRIP, 2)).toFixed(1)}h${Math.max(part - 1, 1).toFixed(1)}V${bottom}z`
            : "",
        )
        .join("");
    const bad = track.failed.map((count, i) => count + track.unanswered[i]);
    const shapes = [];
    if (top > STRIP) {
      shapes.push(
        draw("path", { class: "tone-ok", d: columns(track.peak, STRIP, (value) => value / most) }),
        draw("path", { class: "tone-bad", d: columns(bad, STRIP, (value, i) => ((value / track.began[i]) * track.peak[i]) / most) }),
        draw("path", { class: "slow", d: columns(track.slowest, STRIP * 2 + 4, latencyOf) }),
        draw("path", { class: "base", d: `M0 ${STRIP + 0.5}H${width}M0 ${STRIP * 2 + 4.5}H${width}` }),
      );
    }
    const marks = ticks.map((row) => ({
      ...row,
      isBar: true,
      left: this.x(row.at) - 0.5,
      long: 1.5,
      top: foot + 1,
      tall: 5,
      words: `#${row.number} ${row.method} ${row.subject}`.trim(),
    }));
    const items = [
      ...(bars ?? []).map((bar) => ({ ...bar, at: bar.begin, isBar: true, tall: BAR - 2, words: this.wordsOf(bar) })),
      ...marks,
    ];
    for (const tone of TONES) {
      const boxes = items
        .filter((item) => item.tone === tone)
        .map((item) => `M${item.left.toFixed(1)} ${item.top}h${item.long.toFixed(1)}v${item.tall}h${(-item.long).toFixed(1)}z`);
      if (boxes.length) shapes.push(draw("path", { class: `tone-${tone}`, d: boxes.join("") }));
    }
    if (bars === null) {
      track.began.forEach((count, i) => {
        if (!count) return;
        const words = `${moment(this.time(i * part))} s: ${plural(count, "request")}, concurrency ${track.peak[i]}, slowest ${duration(track.slowest[i])}${wrong(track.failed[i], track.unanswered[i], ", ")}`;
        items.push({ number: track.number[i], at: this.time(i * part), left: i * part, top: 0, long: part, tall: STRIP * 2 + 4, words });
      });
    }
    this.items.push(...items.filter((item) => item.tone !== "dim").map((item) => ({ ...item, track: number })));
    const cursor = draw("rect", { class: "cursor", width: 0, height: 0 });
    const chart = draw("svg", { width, height, viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true" }, ...shapes, cursor);
    const about = `concurrency, peak ${Math.max(...track.peak, 0)} · latency, slowest ${duration(Math.max(...track.slowest, 0))}${wrong(total(track.failed), total(track.unanswered), " · ")}`;
    const figure = make(
      "figure.track",
      {},
      make("figcaption", {}, name ? make("b", {}, ...visible(name)) : "", make("span.aside", {}, about)),
      chart,
    );
    figure.dataset.track = number;
    return figure;
  }

  /** Give each request the first line that is free when it begins; return the number of lines. */
  pack(bars, top) {
    const free = [];
    bars.sort((one, other) => one.begin - other.begin);
    for (const bar of bars) {
      bar.left = Math.max(this.x(bar.begin), 0);
      bar.long = Math.max(Math.min(this.x(bar.end), this.width) - bar.left, 2);
      let line = free.findIndex((until) => until <= bar.left);
      if (line < 0) line = free.length < MOST ? free.length : bar.number % MOST;
      free[line] = Math.max(bar.left + bar.long + 1, free[line] ?? 0);
      bar.top = top + line * BAR;
    }
    return free.length;
  }

  wordsOf({ number, begin, end, method, subject, status }) {
    return [`#${number} ${method} ${subject}`.trim(), `${moment(begin)} s`, duration(Math.max(end - begin, 0)), status]
      .filter(Boolean)
      .join(", ");
  }

  axis() {
    const { begin, end } = this.found;
    const step = stepOf((end - begin) / Math.max(2, this.width / 110));
    const ticks = [];
    for (let at = Math.ceil(begin / step) * step; at <= end && ticks.length < 100; at += step) {
      const tick = make("span", {}, at < step / 2 ? "0" : axisWords(at, step));
      tick.style.left = `${this.x(at)}px`;
      if (this.x(at) < this.width - 40) ticks.push(tick);
    }
    return make("div.ticks", { ariaHidden: "true" }, ...ticks);
  }

  /** Make a row the selected one: its bar, or the part in which it begins. */
  select(row) {
    this.cursor = row;
    if (this.found) this.mark();
  }

  /** Show the cursor, and say what it is at. */
  mark() {
    const { cursor, items, isCompact } = this;
    const x = cursor && this.x(cursor.at);
    const item =
      cursor &&
      (items.find((each) => each.number === cursor.number) ??
        items.find((each) => !each.isBar && each.left <= x && x < each.left + each.long));
    this.cursor = item ?? (isCompact ? cursor : null);
    const here = item ?? (this.cursor && { track: 0, left: x, long: 0, top: 2, tall: 99 }); // Messages that are not drawn one by one.
    for (const figure of this.plots.querySelectorAll("figure")) {
      const isHere = here && Number(figure.dataset.track) === here.track;
      const shape = isHere
        ? { x: here.left - 1.5, y: here.top - 1.5, width: here.long + 3, height: here.tall + 3 }
        : { width: 0, height: 0 };
      for (const [name, value] of Object.entries(shape)) figure.querySelector(".cursor").setAttribute(name, String(value));
    }
    this.says.textContent = item ? item.words : this.summary;
    Object.assign(this.plots, {
      ariaValueMax: String(Math.max(items.length - 1, 0)),
      ariaValueNow: String(Math.max(items.indexOf(item), 0)),
      ariaValueText: this.says.textContent,
    });
  }

  move(by) {
    if (!this.items?.length) return;
    const at = this.cursor ? this.items.indexOf(this.cursor) : by > 0 ? -1 : this.items.length;
    this.cursor = this.items[Math.min(Math.max(at + by, 0), this.items.length - 1)];
    this.mark();
    this.selected(this.cursor.number);
  }

  /** Scale the window around the cursor, or its middle. */
  zoom(factor, around = null) {
    if (!this.found) return;
    const { begin, end, whole } = this.found;
    const at = around ?? (this.cursor ? this.cursor.at : (begin + end) / 2);
    const long = Math.min((end - begin) * factor, whole);
    const left = Math.min(Math.max(at - ((at - begin) / (end - begin)) * long, 0), whole - long);
    this.moved(long >= whole ? null : [left, left + long]);
  }

  shift(share) {
    if (!this.found) return;
    const { begin, end, whole } = this.found;
    const left = Math.min(Math.max(begin + (end - begin) * share, 0), whole - (end - begin));
    this.moved(end - begin >= whole ? null : [left, left + end - begin]);
  }

  key(event) {
    const acts = {
      ArrowRight: () => this.move(1),
      ArrowLeft: () => this.move(-1),
      ArrowDown: () => this.move(1),
      ArrowUp: () => this.move(-1),
      Home: () => this.move(-Infinity),
      End: () => this.move(Infinity),
      "+": () => this.zoom(0.5),
      "=": () => this.zoom(0.5),
      "-": () => this.zoom(2),
      "[": () => this.shift(-0.5),
      "]": () => this.shift(0.5),
      0: () => this.moved(null),
      Enter: () => this.cursor && this.opened(this.cursor.number),
    };
    if (!(event.key in acts) || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    event.stopPropagation();
    acts[event.key]();
  }

  /** Return the request or the part at a position in the plots. */
  near({ clientX, clientY }) {
    const figure = document.elementFromPoint(clientX, clientY)?.closest("figure");
    if (!figure || !this.found) return null;
    const box = figure.querySelector("svg").getBoundingClientRect();
    const [x, y, track] = [clientX - box.left, clientY - box.top, Number(figure.dataset.track)];
    let best = null;
    let least = 12;
    for (const item of this.items) {
      if (item.track !== track) continue;
      const beside = Math.max(item.left - x, x - item.left - item.long, 0);
      const off = beside + (item.isBar && (this.isCompact || y > STRIP * 2 + 4) ? Math.abs(item.top + BAR / 2 - y) : 0);
      if (off < least) [best, least] = [item, off];
    }
    return best;
  }

  pressed(event) {
    if (event.button !== 0 || !this.found) return;
    this.drag = { from: event.clientX, box: this.plots.getBoundingClientRect() };
    this.plots.setPointerCapture(event.pointerId);
  }

  pointed(event) {
    const { hint } = this;
    if (this.drag && Math.abs(event.clientX - this.drag.from) > HANDLE) {
      const [left, right] = [this.drag.from, event.clientX].sort((one, other) => one - other);
      this.drag.shade ??= this.plots.appendChild(make("div.shade"));
      Object.assign(this.drag.shade.style, { left: `${left - this.drag.box.left}px`, width: `${right - left}px` });
      hint.hidden = true;
      return;
    }
    const item = this.near(event);
    hint.hidden = !item;
    if (!item) return;
    hint.replaceChildren(...visible(item.words));
    const box = this.element.getBoundingClientRect();
    hint.style.top = `${event.clientY - box.top + this.element.scrollTop + 16}px`;
    hint.style.left = `${Math.max(Math.min(event.clientX - box.left + 8, box.width - hint.offsetWidth - 8), 4)}px`;
  }

  released(event) {
    const { drag } = this;
    this.endDrag();
    if (!drag) return;
    const ends = [drag.from, event.clientX].map((x) => this.time(Math.min(Math.max(x - drag.box.left, 0), this.width)));
    ends.sort((one, other) => one - other);
    if (drag.shade) return this.moved(ends);
    const item = this.near(event);
    if (item) this.opened(item.number);
  }

  endDrag() {
    this.drag?.shade?.remove();
    this.drag = null;
  }

  wheeled(event) {
    if (!event.ctrlKey || !this.found) return;
    event.preventDefault();
    this.zoom(event.deltaY > 0 ? 1.3 : 1 / 1.3, this.time(event.clientX - this.plots.getBoundingClientRect().left));
  }
}
