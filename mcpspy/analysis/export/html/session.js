// The session as embedded in the page: rows, and bodies that are parsed on demand.
// Owns the relations between rows.

const session = (() => {
  const embedded = (name) => [...document.querySelectorAll(`script.${name}`)];
  const { facts, rows: members, starts, version, tables, cells, views } = JSON.parse(embedded("session")[0].textContent);
  const blocks = embedded("bodies");
  const read = new Map();

  const rows = members.map((values, place) => ({ place, ...rowOf(values, facts.lasted) })).map((row) => ({ ...row, cells: cells[row.number] }));

  const requests = new Map();
  const followers = new Map();
  const along = new Map();
  const carriers = new Map();
  const group = (map, key, row) => (map.has(key) ? map.get(key).push(row) : map.set(key, [row]));
  for (const row of rows) {
    if (row.kind === "request") {
      requests.set(row.exchange, row);
      if (row.continues !== null) followers.set(row.continues, row);
    } else if (row.kind === "http") {
      if (row.http !== null) group(carriers, row.http, row);
    } else if (row.exchange !== null) group(along, row.exchange, row);
  }

  const begin = rows.reduce((least, row) => Math.min(least, row.at), 0);
  const end = rows.reduce((most, row) => Math.max(most, row.last), facts.lasted);

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

  return {
    facts,
    version,
    tables,
    rows,
    begin,
    end,
    body,
    /** The address of a row in the page. */
    address: (row) => `#${row.number}`,
    byNumber: new Map(rows.map((row) => [row.number, row])),
    /** The request that a row belongs to, if it is in the page. */
    requestOf: (row) => (row.exchange === null || row.kind === "request" ? undefined : requests.get(row.exchange)),
    /** The request that this one retries with input, and the retry of this one. */
    before: (row) => (row.continues === null ? undefined : requests.get(row.continues)),
    after: (row) => (row.kind === "request" ? followers.get(row.exchange) : undefined),
    /** Messages between a request and its response. */
    along: (row) => (row.kind === "request" ? (along.get(row.exchange) ?? []) : []),
    /** Show the user's cells and the views of a row, as they were at the time of the export. */
    views: (row, show) => show({ cells: row.cells ?? [], views }),
    /** The head and the end of the HTTP exchange that carried a message. */
    carriers: (row) => (row.http === null || row.kind === "http" ? [] : (carriers.get(row.http) ?? [])),
  };
})();
