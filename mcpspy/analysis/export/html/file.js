// The session as the page contains it: its rows, and its bodies, which are parsed on demand.
// Owns the relations between rows.

const file = (() => {
  const embedded = (name) => [...document.querySelectorAll(`script.${name}`)];
  const { facts, members, rows: lists, starts, version, tables, cells, views } = JSON.parse(embedded("session")[0].textContent);
  const blocks = embedded("bodies");
  const read = new Map();

  const rows = lists.map((values) => {
    const row = {};
    for (let i = 0; i < members.length; i++) row[members[i]] = values[i];
    row.cells = cells[row.number];
    return rowOf(row, facts.lasted);
  });

  const requests = new Map(rows.filter((row) => row.kind === "request").map((row) => [row.exchange, row]));
  const followers = new Map(rows.filter((row) => row.continues !== null).map((row) => [row.continues, row]));
  const byNumber = new Map(rows.map((row) => [row.number, row]));
  const calls = new Map(
    rows
      .filter((row) => row.page !== null)
      .map((row) => [row.page, row])
      .reverse(),
  ); // The first call of a page counts.
  const along = new Map();
  const carriers = new Map();
  const group = (map, key, row) => (map.has(key) ? map.get(key).push(row) : map.set(key, [row]));
  for (const row of rows) {
    if (row.kind === "http") {
      if (row.http !== null) group(carriers, row.http, row);
    } else if (row.shownBy !== null) group(along, row.shownBy, row);
    else if (row.kind !== "request" && row.exchange !== null) group(along, row.exchange, row);
  }

  /** Return the text of a body. */
  function body(number) {
    let low = 0;
    let high = blocks.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (starts[middle] <= number) low = middle;
      else high = middle - 1;
    }
    if (!read.has(low)) read.set(low, JSON.parse(blocks[low].textContent));
    return read.get(low)[number - starts[low]];
  }

  /** Return the request that a row belongs to, if it is in the page. */
  const requestOf = (row) => (row.exchange === null || row.kind === "request" ? undefined : requests.get(row.exchange));

  /** Return what the view of a row shows with it. */
  function open(row) {
    const heads = row.http === null || row.kind === "http" ? [] : (carriers.get(row.http) ?? []);
    const shown = [row.body, row.answer, ...heads.map((each) => each.body)].filter((number) => number >= 0);
    const isRequest = row.kind === "request";
    return {
      bodies: Object.fromEntries(shown.map((number) => [number, body(number)])),
      along: isRequest ? (along.get(row.exchange) ?? []) : [],
      carriers: heads,
      related: {
        request: requestOf(row) ?? (row.shownBy === null ? undefined : requests.get(row.shownBy)),
        before: row.continues === null ? undefined : requests.get(row.continues),
        after: isRequest ? followers.get(row.exchange) : undefined,
        page: byNumber.get(row.page),
        call: calls.get(row.number),
      },
    };
  }

  return {
    facts,
    version,
    tables,
    rows,
    views,
    body,
    requestOf,
    open,
    byNumber,
    end: rows.reduce((most, row) => Math.max(most, row.last), facts.lasted),
    /** A row that the view of another one shows: progress, or a poll of its task. */
    isFolded: (row) => row.shownBy !== null && requests.has(row.shownBy),
  };
})();
