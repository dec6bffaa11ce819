// The client of the TypeScript SDK 2: one session over HTTP that calls a tool until its stdin is closed.
//
//     node tests/peers/clients/calling.mjs URL
//
// calling.py describes the calls and the output.

import { createRequire } from "node:module";
import { text as all } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";

const AT_ONCE = 2;

// This file is outside the folder in which its packages are installed.
const require = createRequire(new URL("../../../.peers/package.json", import.meta.url));
const { Client, StreamableHTTPClientTransport } = require("@modelcontextprotocol/client");

const found = { right: 0, changes: 0, errors: [], wrong: [], tools: [] };
let isOver = false;
let isStale = true;

const client = new Client({ name: "calling", version: "1" });
client.setNotificationHandler("notifications/tools/list_changed", () => {
  found.changes += 1;
  isStale = true;
});

async function list() {
  const { tools } = await client.listTools();
  found.tools = tools.map((tool) => tool.name).sort();
}

async function call(name) {
  for (let number = 1; !isOver; number += 1) {
    const text = `typescript-${name}-${number}`;
    try {
      if (isStale) {
        isStale = false;
        await list();
      }
      const { content } = await client.callTool({ name: "echo", arguments: { text } });
      if (content[0].text === text) found.right += 1;
      else found.wrong.push(content[0].text);
    } catch (error) {
      found.errors.push(error.message);
      await sleep(50);
    }
  }
}

await client.connect(new StreamableHTTPClientTransport(new URL(process.argv[2])));
const calls = Array.from({ length: AT_ONCE }, (_, number) => call(`task${number}`));
console.log("begun");
await all(process.stdin);
isOver = true;
await Promise.all(calls);
await list();
console.log(JSON.stringify(found));
await client.close();
