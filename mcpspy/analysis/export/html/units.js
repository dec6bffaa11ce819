// Numbers with their units, in the format of `mcpspy show`.

/** Add to a row, whose members are those of `PageRow` (`rows.py`), its end; `now` is that of what is pending. */
function rowOf(row, now) {
  if (row.latency !== null) row.latency = Math.max(row.latency, 0);
  row.last = row.end ?? (row.kind === "request" ? now : row.at);
  return row;
}

/** Return seconds since the start. */
function moment(at) {
  return at.toFixed(3);
}

function duration(seconds) {
  if (seconds < 0.001) return `${(seconds * 1e6).toFixed(0)} µs`;
  if (seconds < 1) return `${(seconds * 1e3).toFixed(1)} ms`;
  if (seconds < 60) return `${seconds.toFixed(2)} s`;
  const minutes = Math.floor(Math.round(seconds) / 60);
  const rest = Math.round(seconds) % 60;
  if (minutes < 60) return `${minutes}m${String(rest).padStart(2, "0")}s`;
  return `${Math.floor(minutes / 60)}h${String(minutes % 60).padStart(2, "0")}m`;
}

function size(count) {
  if (count < 1000) return String(count);
  let number = count / 1000;
  let units = "kMG";
  while (number >= 999.95 && units.length > 1) {
    number /= 1000;
    units = units.slice(1);
  }
  return number.toFixed(1) + units[0];
}

/** Return a number with commas: 12,345. */
function commas(count) {
  return count.toLocaleString("en");
}

function plural(count, noun) {
  return `${commas(count)} ${noun}${count === 1 ? "" : "s"}`;
}

/** Return a time: the reader's local time, and UTC if it differs. */
function clock(started, at) {
  const began = Date.parse(started);
  if (Number.isNaN(began)) return "";
  const when = new Date(began + at * 1000);
  const pad = (number, digits = 2) => String(number).padStart(digits, "0");
  const date = `${when.getFullYear()}-${pad(when.getMonth() + 1)}-${pad(when.getDate())}`;
  const time = `${pad(when.getHours())}:${pad(when.getMinutes())}:${pad(when.getSeconds())}`;
  const off = -when.getTimezoneOffset();
  const zone = off ? `UTC${off < 0 ? "-" : "+"}${pad(Math.floor(Math.abs(off) / 60))}:${pad(Math.abs(off) % 60)}` : "UTC";
  return `${date} ${time}.${pad(when.getMilliseconds(), 3)} ${zone}`;
}

/** Return the round number of seconds at or above one. */
function stepOf(least) {
  if (!(least > 0)) return 1;
  for (const step of [60, 300, 600, 1800, 3600, 7200, 21600, 86400]) if (least > 30 && step >= least) return step;
  const power = 10 ** Math.floor(Math.log10(least));
  return [1, 2, 5, 10].map((digit) => digit * power).find((step) => step >= least * 0.999);
}

function axisWords(at, step) {
  if (step < 1) return `${Number(at.toFixed(Math.max(0, -Math.floor(Math.log10(step)))))} s`;
  return at < 60 || step < 10 ? `${Number(at.toFixed(0))} s` : duration(Math.round(at));
}
