// The session over time: a bar for each exchange, a tick for other messages. Supports clicks, dragging and arrow
// keys.

const TONES = ["quiet", "ok", "open", "issue", "bad"]; // Later tones are drawn on top, so one error among thousands is visible.
const LANES = 8;
const AXIS = 16;
const NEAR = 6; // Pixels beside a bar that still count as the bar.

class Timeline {
  constructor(canvas, { chosen, zoomed, moved }) {
    this.canvas = canvas;
    this.range = [session.begin, session.end];
    this.shown = new Set(session.rows);
    this.current = null;
    this.drag = null;
    this.lanes = this.lay();
    const depth = 1 + this.lanes.reduce((most, lane) => Math.max(most, lane), 0);
    this.lane = depth > 4 ? 7 : depth > 2 ? 9 : 13; // Pixels from one lane of bars to the next.
    this.ticks = depth * this.lane + 4;
    this.height = this.ticks + 8 + AXIS;
    canvas.style.height = `${this.height}px`;
    this.bars = document.createElement("canvas");
    new ResizeObserver(() => this.paint()).observe(canvas);
    canvas.setAttribute("aria-valuenow", "0");
    canvas.setAttribute("aria-valuetext", "none selected");
    canvas.setAttribute("aria-valuemax", String(Math.max(session.rows.length - 1, 0)));
    canvas.addEventListener("pointerdown", (event) => {
      this.drag = [event.offsetX, event.offsetX];
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointermove", (event) => {
      if (this.drag) this.drag[1] = event.offsetX;
      this.hint(event);
      if (this.drag) this.draw();
    });
    canvas.addEventListener("pointercancel", () => {
      this.drag = null;
      this.draw();
    });
    canvas.addEventListener("pointerup", (event) => {
      if (!this.drag) return;
      const ends = [this.drag[0], event.offsetX];
      this.drag = null;
      const [from, to] = [Math.min(...ends), Math.max(...ends)];
      if (to - from > NEAR) zoomed([this.time(from), this.time(to)]);
      else {
        const row = this.near(event.offsetX, event.offsetY);
        if (row) chosen(row);
      }
      this.draw();
    });
    canvas.addEventListener("keydown", (event) => {
      const by = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
      if (!by) return;
      event.preventDefault();
      event.stopPropagation();
      moved(by);
    });
  }

  /** Give each exchange the first lane that is free at its start. */
  lay() {
    const free = [];
    return session.rows.map((row) => {
      if (row.kind !== "request") return -1;
      let lane = free.findIndex((until) => until <= row.at);
      if (lane < 0) lane = free.length < LANES ? free.length : row.place % LANES;
      free[lane] = Math.max(row.last, free[lane] ?? 0);
      return lane;
    });
  }

  x(at) {
    const [begin, end] = this.range;
    return ((at - begin) / (end - begin || 1)) * (this.canvas.clientWidth - 2) + 1;
  }

  time(x) {
    const [begin, end] = this.range;
    return begin + ((x - 1) / (this.canvas.clientWidth - 2 || 1)) * (end - begin);
  }

  y(row) {
    return this.lanes[row.place] < 0 ? this.ticks : this.lanes[row.place] * this.lane + 3;
  }

  near(x, y) {
    let best = null;
    let least = Infinity;
    for (const row of this.shown) {
      const [left, right] = [this.x(row.at), this.x(row.last)];
      const beside = x < left ? left - x : x > right ? x - right : 0;
      const off = beside + Math.abs(this.y(row) + 2 - y) / 2;
      if (beside <= NEAR * 3 && off < least) [best, least] = [row, off];
    }
    return best;
  }

  hint(event) {
    const row = this.near(event.offsetX, event.offsetY);
    this.canvas.title = row ? `#${row.number} ${row.method} ${row.subject}`.trim() : "";
  }

  show(rows, range) {
    this.shown = new Set(rows);
    this.range = range;
    this.paint();
  }

  select(row) {
    this.current = row;
    this.canvas.setAttribute("aria-valuenow", String(row?.place ?? 0));
    this.canvas.setAttribute("aria-valuetext", row ? `#${row.number} ${row.method} ${row.subject}, at ${moment(row.at)} s` : "none selected");
    this.draw();
  }

  /** Draw all bars; the cursor is drawn on top, so that it moves quickly in a session of any size. */
  paint() {
    const { height } = this;
    const width = this.canvas.clientWidth;
    if (!width) return;
    const scale = devicePixelRatio || 1;
    for (const each of [this.bars, this.canvas]) Object.assign(each, { width: Math.round(width * scale), height: Math.round(height * scale) });
    const pen = this.bars.getContext("2d");
    pen.scale(scale, scale);
    const ink = inkOf(this.canvas);
    this.drawAxis(pen, width, ink);
    for (const isShown of [false, true]) {
      pen.globalAlpha = isShown ? 1 : 0.22;
      for (const tone of TONES) {
        pen.fillStyle = ink(`bar-${tone}`);
        for (const row of session.rows) {
          if (row.tone === tone && row.kind !== "http" && this.shown.has(row) === isShown) this.bar(pen, row);
        }
      }
    }
    this.draw();
  }

  draw() {
    const { canvas, bars } = this;
    if (!bars.width || !bars.height) return;
    const scale = devicePixelRatio || 1;
    const pen = canvas.getContext("2d");
    pen.setTransform(1, 0, 0, 1, 0, 0);
    pen.clearRect(0, 0, canvas.width, canvas.height);
    pen.drawImage(bars, 0, 0);
    pen.scale(scale, scale);
    const ink = inkOf(canvas);
    if (this.current) this.drawCurrent(pen, canvas.clientWidth, ink);
    if (!this.drag) return;
    pen.fillStyle = ink("drag");
    pen.fillRect(Math.min(...this.drag), 0, Math.abs(this.drag[1] - this.drag[0]), this.height);
  }

  bar(pen, row) {
    const [left, right] = [this.x(row.at), this.x(row.last)];
    if (right < 0 || left > this.canvas.clientWidth) return;
    if (this.lanes[row.place] < 0) pen.fillRect(left - 0.5, this.y(row), 1.5, 5);
    else pen.fillRect(left, this.y(row), Math.max(right - left, 2), this.lane - 2);
  }

  drawCurrent(pen, width, ink) {
    const row = this.current;
    const left = this.x(row.at);
    const long = Math.max(this.x(row.last) - left, 2);
    if (left > width || left + long < 0) return;
    pen.strokeStyle = ink("text");
    pen.lineWidth = 1.5;
    pen.strokeRect(left - 1.5, this.y(row) - 1.5, long + 3, this.lanes[row.place] < 0 ? 8 : this.lane + 1);
    pen.beginPath();
    pen.moveTo(left + long / 2, this.height - AXIS + 2);
    pen.lineTo(left + long / 2 - 4, this.height - AXIS + 8);
    pen.lineTo(left + long / 2 + 4, this.height - AXIS + 8);
    pen.fillStyle = ink("text");
    pen.fill();
  }

  drawAxis(pen, width, ink) {
    const [begin, end] = this.range;
    const step = stepOf((end - begin) / Math.max(2, width / 110));
    pen.font = "11px system-ui, sans-serif";
    pen.textBaseline = "bottom";
    for (let at = Math.ceil(begin / step) * step; at <= end; at += step) {
      const x = Math.round(this.x(at)) + 0.5;
      pen.strokeStyle = ink("line");
      pen.beginPath();
      pen.moveTo(x, 0);
      pen.lineTo(x, this.height);
      pen.stroke();
      const words = at < step / 2 ? "0" : axisWords(at, step);
      pen.fillStyle = ink("faint");
      if (x + pen.measureText(words).width + 4 < width) pen.fillText(words, x + 4, this.height);
    }
  }
}

/** Return a function from names to colours of the current theme. */
function inkOf(element) {
  const style = getComputedStyle(element);
  return (name) => style.getPropertyValue(`--${name}`).trim();
}
