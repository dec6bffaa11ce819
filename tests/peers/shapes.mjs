// Judge messages by the zod schemas of packages of the TypeScript SDK; the lines and verdicts are those of shapes.py.
// node --input-type=module -e "$(cat shapes.mjs)" PACKAGES…, in .peers/, where node finds them.
import { createInterface } from "node:readline";

const schemas = {};
for (const name of process.argv.slice(1)) Object.assign(schemas, await import(name));

const called = {};
const results = {};
for (const [key, schema] of Object.entries(schemas)) {
  const method = schema?.shape?.method?.value;
  if (typeof method !== "string") continue;
  called[method] = schema;
  results[method] = schemas[key.replace("Request", "Result")] ?? schemas.EmptyResultSchema;
}
results["sampling/createMessage"] = schemas.CreateMessageResultWithToolsSchema ?? results["sampling/createMessage"];
results.task = schemas.CreateTaskResultV2Schema ?? schemas.CreateTaskResultSchema;

for await (const line of createInterface({ input: process.stdin })) {
  const [, , kind, method, value] = JSON.parse(line);
  const schema = (kind === "result" ? results : called)[method];
  const message = { jsonrpc: "2.0", ...(kind === "request" && { id: 1 }), method, params: value };
  const found = schema?.safeParse(kind === "result" ? value : message);
  const first = found?.error?.issues[0];
  console.log(JSON.stringify(found === undefined ? "?" : first === undefined ? null : `${first.path.join(".")}: ${first.message}`));
}
