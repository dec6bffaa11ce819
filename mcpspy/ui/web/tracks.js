// The timeline: concurrency and latency per part of a window of time, and the requests one by one if they are few.
// One track per session of a run. The server counts, so that a million messages are a few hundred numbers.

const PART = 4; // Pixels of a part.
const STRIP = 46; // Height of concurrency and of latency.
const BAR = 9; // Height of a request, with the gap below it.
const MOST = 10; // Requests above each other in one track.
const HANDLE = 5; // Pixels that the pointer moves before it selects a range.
const SLOWEST = 100; // Seconds at the top of the latency, which is logarithmic from 0.1 ms.

/** The numbers of errors and of unanswered requests, each after a separator. */
function wrong(failed, unanswered, separator) {
  const words = [failed && plural(failed, "error"), unanswered && `${unanswered.toLocaleString("en")} unanswered`];
  return words.filter(Boolean).map((each) => separator + each).join("");
}

class TimelineView {
  constructor(element, { opened, moved, load }) {
    Object.assign(this, { element, opened, moved, load, found: null, cursor: null, drag: null, version: 0 });
    this.plots = make("div.plots", { tabIndex: 0, role: "application", ariaLabel: "Timeline: arrows select, Enter opens, plus and minus zoom, 0 shows everything" });
    this.says = make("output.aside", {});
    this.hint = make("div.hint", { hidden: true });
    const tool = (words, title, act) => button(words, title, act);
    this.tools = make("div.bar.tools", {}, tool("Zoom in", "+", () => this.zoom(0.5)), tool("Zoom out", "-", () => this.zoom(2)), tool("Earlier", "[", () => this.shift(-0.5)), tool("Later", "]", () => this.shift(0.5)), tool("Whole session", "0", () => moved(null)), this.says);
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

  x(at) {
    const { begin, end } = this.found;
    return ((at - begin) / (end - begin)) * this.width;
  }

  time(x) {
    const { begin, end } = this.found;
    return begin + (x / this.width) * (end - begin);
  }

  draw() {
    const { tracks, begin, end } = this.found;
    const names = session.facts.tracks?.length ? session.facts.tracks : [""];
    this.items = [];
    const most = Math.max(1, ...tracks.flatMap((track) => track.peak));
    const figures = tracks.map((track, number) => this.track(track, number, names[number] ?? "", most));
    this.plots.replaceChildren(...figures, this.axis());
    this.items.sort((one, other) => one.at - other.at);
    const count = tracks.reduce((sum, track) => sum + track.began.reduce((all, each) => all + each, 0), 0);
    const peak = tracks.length === 1 ? `, peak concurrency ${most}` : "";
    this.summary = `${moment(begin)} to ${moment(end)} s: ${plural(count, "request")}${peak}`;
    this.mark();
  }

  track(track, number, name, most) {
    const bars = this.found.bars?.filter((bar) => bar[3] === number) ?? null;
    const rows = bars === null ? 0 : this.pack(bars);
    const height = STRIP * 2 + 8 + rows * BAR;
    const width = this.width;
    const part = width / track.peak.length;
    const latencyOf = (seconds) => (seconds > 0 ? Math.min(Math.max((Math.log10(seconds) + 4) / (Math.log10(SLOWEST) + 4), 0.02), 1) : 0);
    const columns = (values, foot, tall) => values.map((value, i) => (value > 0 ? `M${(i * part).toFixed(1)} ${foot}v${(-Math.max(tall(value, i) * STRIP, 2)).toFixed(1)}h${Math.max(part - 1, 1).toFixed(1)}V${foot}z` : "")).join("");
    const bad = track.failed.map((count, i) => count + track.unanswered[i]);
    const shapes = [
      draw("path", { class: "tone-ok", d: columns(track.peak, STRIP, (value) => value / most) }),
      draw("path", { class: "tone-bad", d: columns(bad, STRIP, (value, i) => ((value / track.began[i]) * track.peak[i]) / most) }),
      draw("path", { class: "slow", d: columns(track.slowest, STRIP * 2 + 4, latencyOf) }),
      draw("path", { class: "base", d: `M0 ${STRIP + 0.5}H${width}M0 ${STRIP * 2 + 4.5}H${width}` }),
    ];
    for (const tone of ["ok", "quiet", "issue", "open", "bad"]) {
      const boxes = (bars ?? []).filter((bar) => bar[4] === tone).map((bar) => `M${bar.left.toFixed(1)} ${bar.top}h${bar.long.toFixed(1)}v${BAR - 2}h${(-bar.long).toFixed(1)}z`);
      if (boxes.length) shapes.push(draw("path", { class: `tone-${tone}`, d: boxes.join("") }));
    }
    if (bars !== null) this.items.push(...bars.map((bar) => ({ number: bar[0], at: bar[1], track: number, left: bar.left, top: bar.top, long: bar.long, words: this.wordsOf(bar) })));
    else {
      track.began.forEach((count, i) => {
        if (!count) return;
        const words = `${moment(this.time(i * part))} s: ${plural(count, "request")}, concurrency ${track.peak[i]}, slowest ${duration(track.slowest[i])}${wrong(track.failed[i], track.unanswered[i], ", ")}`;
        this.items.push({ number: track.number[i], at: this.time(i * part), track: number, left: i * part, top: 0, long: part, words });
      });
    }
    const cursor = draw("rect", { class: "cursor", width: 0, height: 0 });
    const chart = draw("svg", { width, height, viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true" }, ...shapes, cursor);
    const sum = (counts) => counts.reduce((all, each) => all + each, 0);
    const about = `concurrency, peak ${Math.max(...track.peak, 0)} · latency, slowest ${duration(Math.max(...track.slowest, 0))}${wrong(sum(track.failed), sum(track.unanswered), " · ")}`;
    const figure = make("figure.track", {}, make("figcaption", {}, name ? make("b", {}, ...visible(name)) : "", make("span.aside", {}, about)), chart);
    figure.dataset.track = number;
    return figure;
  }

  /** Give each request the first line that is free when it begins; return the number of lines. */
  pack(bars) {
    const free = [];
    bars.sort((one, other) => one[1] - other[1]);
    for (const bar of bars) {
      bar.left = Math.max(this.x(bar[1]), 0);
      bar.long = Math.max(Math.min(this.x(bar[2]), this.width) - bar.left, 2);
      let line = free.findIndex((until) => until <= bar.left);
      if (line < 0) line = free.length < MOST ? free.length : bar[0] % MOST;
      free[line] = Math.max(bar.left + bar.long + 1, free[line] ?? 0);
      bar.top = STRIP * 2 + 8 + line * BAR;
    }
    return free.length;
  }

  wordsOf([number, begin, end, , , method, subject, status]) {
    return [`#${number} ${method} ${subject}`.trim(), `${moment(begin)} s`, duration(Math.max(end - begin, 0)), status].filter(Boolean).join(", ");
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

  /** Show the cursor, and say what it is at. */
  mark() {
    const item = this.items.find((each) => each.number === this.cursor?.number && each.track === this.cursor.track);
    this.cursor = item ?? null;
    for (const figure of this.plots.querySelectorAll("figure")) {
      const box = figure.querySelector(".cursor");
      const isHere = item && Number(figure.dataset.track) === item.track;
      const shape = isHere ? { x: item.left - 1.5, y: item.top ? item.top - 1.5 : 0, width: item.long + 3, height: item.top ? BAR + 1 : STRIP * 2 + 4 } : { width: 0, height: 0 };
      for (const [name, value] of Object.entries(shape)) box.setAttribute(name, String(value));
    }
    this.says.textContent = item ? item.words : this.summary;
  }

  move(by) {
    if (!this.items?.length) return;
    const at = this.cursor ? this.items.indexOf(this.cursor) : by > 0 ? -1 : this.items.length;
    this.cursor = this.items[Math.min(Math.max(at + by, 0), this.items.length - 1)];
    this.mark();
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
    const acts = { ArrowRight: () => this.move(1), ArrowLeft: () => this.move(-1), ArrowDown: () => this.move(1), ArrowUp: () => this.move(-1), Home: () => this.move(-Infinity), End: () => this.move(Infinity), "+": () => this.zoom(0.5), "=": () => this.zoom(0.5), "-": () => this.zoom(2), "[": () => this.shift(-0.5), "]": () => this.shift(0.5), 0: () => this.moved(null), Enter: () => this.cursor && this.opened(this.cursor.number) };
    if (!(event.key in acts) || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    event.stopPropagation();
    acts[event.key]();
  }

  /** Return the request or the part at a position in the plots. */
  near(event) {
    const figure = event.target.closest?.("figure");
    if (!figure || !this.found) return null;
    const box = figure.querySelector("svg").getBoundingClientRect();
    const [x, y, track] = [event.clientX - box.left, event.clientY - box.top, Number(figure.dataset.track)];
    let best = null;
    let least = 12;
    for (const item of this.items) {
      if (item.track !== track) continue;
      const beside = Math.max(item.left - x, x - item.left - item.long, 0);
      const off = beside + (item.top && y > STRIP * 2 + 4 ? Math.abs(item.top + BAR / 2 - y) : 0);
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
    const item = this.near({ target: document.elementFromPoint(event.clientX, event.clientY) ?? event.target, clientX: event.clientX, clientY: event.clientY });
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
    const item = this.near({ target: document.elementFromPoint(event.clientX, event.clientY), clientX: event.clientX, clientY: event.clientY });
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
