// Evaluate filters with the scripts of an exported page. The first line of stdin is {scripts, pages: [{session, bodies}]};
// each other one a list of filters. For it, stdout gets a line with the numbers of the rows, or the error, for each page
// and filter.
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
    return new Function("document", `${source}\nreturn { session, compileFilter, FilterError, itemOf };`)(document);
  });
}

function found(page, filters) {
  return filters.map((filter) => {
    try {
      const test = page.compileFilter(filter, page.session.tables, page.session.facts.lasted);
      return page.session.rows.filter((row) => test(page.itemOf(row))).map((row) => row.number);
    } catch (error) {
      if (error instanceof page.FilterError) return error.message;
      throw error;
    }
  });
}
