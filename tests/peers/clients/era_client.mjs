// A client of the TypeScript SDK 2, or 1: uses each feature once, and prints which of them work.
//
//     node tests/peers/clients/era_client.mjs MODE PLAN PACKAGES COMMAND ARGS…
//
// PACKAGES is the folder with `node_modules`; MODE `handshake1` is for its SDK 1, and `legacy`, `auto` and a revision
// are for SDK 2. era_client.py describes the plan and the output.

import { createRequire } from "node:module";
import { resolve as absolute } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

const STEP_MS = 8_000;
const SESSION_MS = 120_000;

const [mode, given, packages, command, ...args] = process.argv.slice(2);
const plan = JSON.parse(given);
const isFirst = mode === "handshake1";
const require = createRequire(absolute(packages, "package.json"));
const from = isFirst ? "@modelcontextprotocol/sdk/client" : "@modelcontextprotocol/client";
const { Client } = require(isFirst ? `${from}/index.js` : from);
const { StdioClientTransport } = require(isFirst ? `${from}/stdio.js` : `${from}/stdio`);
const types = isFirst ? require("@modelcontextprotocol/sdk/types.js") : {};

const features = {};
let revision = "";

const ANSWERS = {
  sampling: () => ({ role: "assistant", model: "none", content: { type: "text", text: "a line" } }),
  elicitation: ({ params }) => ({
    action: "accept",
    content: Object.fromEntries((params.requestedSchema.required ?? []).map((name) => [name, "blue"])),
  }),
};
const ASKED = {
  sampling: ["sampling/createMessage", types.CreateMessageRequestSchema],
  elicitation: ["elicitation/create", types.ElicitRequestSchema],
};
const can = Object.keys(ASKED).filter((feature) => !isFirst || ASKED[feature][1]);

const client = new Client(
  { name: "era-client", version: "1.0.0" },
  {
    capabilities: Object.fromEntries(can.map((feature) => [feature, {}])),
    ...(!isFirst && { versionNegotiation: { mode: mode.startsWith("20") ? { pin: mode } : mode } }),
  },
);
for (const feature of can) client.setRequestHandler(ASKED[feature][isFirst ? 1 : 0], ANSWERS[feature]);
const updated = new Promise((resolve) => {
  client.setNotificationHandler(isFirst ? types.ResourceUpdatedNotificationSchema : "notifications/resources/updated", resolve);
});

async function step(feature, work) {
  const late = sleep(STEP_MS, "no answer", { ref: false });
  features[feature] = await Promise.race([work().catch((error) => `${error.constructor.name}: ${error.message}`), late]);
}

function called(name, options) {
  const [tool, toolArguments] = plan[name];
  const request = { name: tool, arguments: toolArguments };
  return isFirst ? client.callTool(request, undefined, options) : client.callTool(request, options);
}

async function call(name) {
  const text = JSON.stringify((await called(name)).content);
  return text.includes(plan[name][2]) ? "" : `unexpected result ${text}`;
}

// The SDK calls `onprogress` later than it resolves the call, and not at all once that is resolved: of a notification
// that is read together with the response, only the transport knows.
async function progress() {
  let count = 0;
  const { onmessage } = transport;
  transport.onmessage = (message) => {
    if (message.method === "notifications/progress") count++;
    return onmessage(message);
  };
  await called("progress", { onprogress: () => {} });
  transport.onmessage = onmessage;
  return count === 2 ? "" : `${count} of 2 notifications`;
}

async function update() {
  const { uri } = plan;
  if (revision >= "2026") await client.listen({ resourceSubscriptions: [uri] });
  else await client.subscribeResource({ uri });
  await call("update");
  await updated;
  return "";
}

async function cancellation() {
  const stop = new AbortController();
  const options = { signal: stop.signal, onprogress: () => stop.abort(new Error("enough")) };
  const end = await called("cancellation", options).then(
    () => "the call has a result",
    () => "",
  );
  return end || call("tools/call");
}

setTimeout(() => {
  features.close = "no end";
  finish();
}, SESSION_MS).unref();

function finish() {
  process.stdout.write(`${JSON.stringify({ revision, features })}\n`, () => process.exit(0));
}

const transport = new StdioClientTransport({ command, args });
try {
  // The SDK 1 has no API for the negotiated revision.
  const { request } = client;
  client.request = async (...words) => {
    const result = await request.apply(client, words);
    revision ||= result.protocolVersion ?? "";
    return result;
  };
  await client.connect(transport);
  if (!isFirst) revision = client.getNegotiatedProtocolVersion();
  features.connect = "";
  await step("tools/list", async () => ((await client.listTools()).tools.length ? "" : "no tools"));
  await step("tools/call", () => call("tools/call"));
  if (plan.progress) await step("progress", progress);
  if (plan.uri)
    await step("resources/read", async () => ((await client.readResource({ uri: plan.uri })).contents.length ? "" : "no contents"));
  if (plan.update) await step("update", update);
  if (plan.cancellation) await step("cancellation", cancellation);
  for (const feature of ["elicitation", "sampling"]) if (plan[feature] && can.includes(feature)) await step(feature, () => call(feature));
} catch (error) {
  features.connect = `${error.constructor.name}: ${error.message}`;
}
try {
  await client.close();
} catch (error) {
  features.close = `${error.constructor.name}: ${error.message}`;
}
finish();
