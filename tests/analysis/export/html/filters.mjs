// Evaluate filters with the scripts of an exported page. The first line of stdin is {scripts, pages: [{session, bodies}]};
// each other one a list of filters, or a number of parts of a timeline. For it, stdout gets a line with the numbers of
// the rows, or the error, for each page and filter; or with the timeline of each page, and its rows.
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";

let pages;
for await (const line of createInterface({ input: process.stdin })) {
  if (pages) process.stdout.write(`${JSON.stringify(pages.map((page) => found(page, JSON.parse(line))))}\n`);
  else pages = opened(JSON.parse(line));
}

function opened({ scripts, pages }) {
  const source = scripts.map((path) => readFileSync(path, "utf8")).join("\n");
  return pages.map(({ session: data, bodies }) => {
    const blocks = { "script.session": [data], "script.bodies": bodies };
    const document = { querySelectorAll: (name) => blocks[name].map((textContent) => ({ textContent })) };
    return new Function("document", `${source}\nreturn { file, compileFilter, FilterError, itemOf, isUsual, timelineOf };`)(document);
  });
}

function found(page, filters) {
  if (typeof filters === "number") {
    const rows = page.file.rows.filter(page.isUsual);
    return { ...page.timelineOf(rows, null, filters), rows: rows.map((row) => [row.number, row.kind]) };
  }
  return filters.map((filter) => {
    try {
      const test = page.compileFilter(filter, page.file.tables, page.file.facts.lasted);
      return page.file.rows.filter((row) => test(page.itemOf(row))).map((row) => row.number);
    } catch (error) {
      if (error instanceof page.FilterError) return error.message;
      throw error;
    }
  });
}
