// The TypeScript SDK's client (2.4), over stdio or HTTP: lists the tools, calls one, prints both as JSON.
//
//     node tests/peers/clients/ts_client.mjs [--mode legacy|auto|2026-07-28] [--tool NAME] [--args JSON]
//         -- COMMAND ARGS... | URL
//
// `auto` starts COMMAND twice: once to probe its era, and once for the session. Without --args, every text argument of
// the tool is "hi".

import { createRequire } from "node:module";
import { parseArgs } from "node:util";

// This file is outside the folder in which its packages are installed.
const require = createRequire(new URL("../../../.peers/package.json", import.meta.url));
const { Client, StreamableHTTPClientTransport } = require("@modelcontextprotocol/client");
const { StdioClientTransport } = require("@modelcontextprotocol/client/stdio");

const OVERALL_MS = 30_000;
const MODES = { legacy: "legacy", auto: "auto", "2026-07-28": { pin: "2026-07-28" } };

function usage(message) {
  console.error(`ts_client.mjs: ${message}`);
  process.exit(2);
}

function texts(tool) {
  const properties = Object.entries(tool?.inputSchema.properties ?? {});
  return Object.fromEntries(properties.filter(([, schema]) => schema.type === "string").map(([name]) => [name, "hi"]));
}

async function outcome(promise) {
  try {
    return { result: await promise };
  } catch (error) {
    return { error: { name: error.constructor.name, code: error.code, message: error.message, data: error.data } };
  }
}

const words = process.argv.slice(2);
const at = words.indexOf("--");
const [command, ...args] = at < 0 ? [] : words.slice(at + 1);
const { values: options } = parseArgs({
  args: at < 0 ? words : words.slice(0, at),
  options: {
    mode: { type: "string", default: "legacy" },
    tool: { type: "string", default: "echo" },
    args: { type: "string" },
  },
});
if (!command) usage("no command; write it after --");
if (!Object.hasOwn(MODES, options.mode)) usage(`--mode is one of ${Object.keys(MODES).join(", ")}`);

setTimeout(() => {
  console.error(`ts_client.mjs: not done within ${OVERALL_MS / 1000} s`);
  process.exit(1);
}, OVERALL_MS).unref();

const client = new Client({ name: "ts-client", version: "1.0.0" }, { versionNegotiation: { mode: MODES[options.mode] } });
try {
  const transport = /^https?:/.test(command)
    ? new StreamableHTTPClientTransport(new URL(command))
    : new StdioClientTransport({ command, args });
  await client.connect(transport);
  const listed = await outcome(client.listTools());
  const tool = listed.result?.tools.find(({ name }) => name === options.tool);
  const given = options.args === undefined ? texts(tool) : JSON.parse(options.args);
  const called = await outcome(client.callTool({ name: options.tool, arguments: given }));
  const transcript = {
    mode: options.mode,
    protocolVersion: client.getNegotiatedProtocolVersion(),
    serverInfo: client.getServerVersion(),
    capabilities: client.getServerCapabilities(),
    "tools/list": listed,
    [`tools/call ${options.tool}`]: called,
  };
  console.log(JSON.stringify(transcript, null, 2));
} catch (error) {
  console.error(`ts_client.mjs: ${error.constructor.name}: ${error.message}`);
  process.exitCode = 1;
} finally {
  await client.close();
}
