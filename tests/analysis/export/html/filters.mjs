// Evaluate filters with the scripts of an exported page: JSON from stdin, JSON to stdout.
// {scripts, pages: [{session, bodies}], filters} → for each page and filter the numbers of the rows, or the error.
import { readFileSync } from "node:fs";

const { scripts, pages, filters } = JSON.parse(readFileSync(0, "utf8"));
const source = scripts.map((path) => readFileSync(path, "utf8")).join("\n");
const found = pages.map(({ session: data, bodies }) => {
  const blocks = { "script.session": [data], "script.bodies": bodies };
  const document = { querySelectorAll: (name) => blocks[name].map((textContent) => ({ textContent })) };
  const page = new Function("document", `${source}\nreturn { session, compileFilter, FilterError, itemOf };`)(document);
  return filters.map((filter) => {
    try {
      const test = page.compileFilter(filter, page.session.tables, page.session.facts.lasted);
      return page.session.rows.filter((row) => test(page.itemOf(row))).map((row) => row.number);
    } catch (error) {
      if (error instanceof page.FilterError) return error.message;
      throw error;
    }
  });
});
process.stdout.write(JSON.stringify(found));
