// The clients of the TypeScript SDKs 2 and 1: sessions that use whatever the server offers.
//
//     node tests/peers/clients/tour.mjs 2 < PLANS      # SDK 2; 1: SDK 1
//
// tour.py describes the plans and the output.

import { createRequire } from "node:module";
import { text } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";

const SDK = process.argv[2];
const AT_ONCE = 4;
const SESSION_MS = 60_000;
const QUIET_MS = 300;
const LATER_MS = 1_100;
const STOP_MS = 5_000;

// This file is outside the folder in which its packages are installed.
const require = createRequire(new URL("../../../.peers/package.json", import.meta.url));
const sdk = SDK === "2" ? second() : first();

function second() {
  const { Client, StreamableHTTPClientTransport, SSEClientTransport } = require("@modelcontextprotocol/client");
  const { StdioClientTransport } = require("@modelcontextprotocol/client/stdio");
  return { Client, StreamableHTTPClientTransport, SSEClientTransport, StdioClientTransport };
}

function first() {
  const { Client } = require("@modelcontextprotocol/sdk/client/index.js");
  const { StreamableHTTPClientTransport } = require("@modelcontextprotocol/sdk/client/streamableHttp.js");
  const { SSEClientTransport } = require("@modelcontextprotocol/sdk/client/sse.js");
  const { StdioClientTransport } = require("@modelcontextprotocol/sdk/client/stdio.js");
  return { Client, StreamableHTTPClientTransport, SSEClientTransport, StdioClientTransport };
}

const HANDLERS = {
  "sampling/createMessage": () => ({
    role: "assistant",
    content: { type: "text", text: "A fixed answer." },
    model: "no-model",
  }),
  "elicitation/create": ({ params }) =>
    params.mode === "url" || params.message.includes("decline")
      ? { action: "decline" }
      : { action: "accept", content: filled(params.requestedSchema) },
  "roots/list": () => ({ roots: [{ uri: "file:///home/ada/demo", name: "demo" }] }),
};

function filled(schema) {
  const values = { string: "blue", boolean: true, integer: 7, number: 2.5 };
  return Object.fromEntries((schema.required ?? []).map((name) => [name, values[schema.properties[name].type]]));
}

function handle(client) {
  const schemas = SDK === "2" ? {} : require("@modelcontextprotocol/sdk/types.js");
  const names = {
    "sampling/createMessage": schemas.CreateMessageRequestSchema,
    "elicitation/create": schemas.ElicitRequestSchema,
    "roots/list": schemas.ListRootsRequestSchema,
  };
  for (const [method, answer] of Object.entries(HANDLERS)) client.setRequestHandler(SDK === "2" ? method : names[method], answer);
}

function opened({ target, transport, environment }) {
  if (transport === "stdio")
    return new sdk.StdioClientTransport({
      command: target[0],
      args: target.slice(1),
      stderr: "ignore",
      ...(environment && { env: environment }),
    });
  const Transport = transport === "sse" ? sdk.SSEClientTransport : sdk.StreamableHTTPClientTransport;
  return new Transport(new URL(target));
}

function made({ mode, bare, client = `typescript-${SDK}` }) {
  const capabilities = bare ? {} : { sampling: {}, elicitation: { form: {}, url: {} }, roots: { listChanged: true } };
  const options = { capabilities };
  const modern = mode === "2026-07-28";
  if (SDK === "2") {
    options.versionNegotiation = { mode: modern ? { pin: mode } : mode === "auto" ? "auto" : "legacy" };
    if (!modern && mode !== "auto") options.supportedProtocolVersions = [mode];
  }
  return new sdk.Client({ name: client, version: "1.0.0" }, options);
}

// SDK 1 has no option for an older revision.
function offering(transport, revision) {
  const send = transport.send.bind(transport);
  transport.send = (message, options) => {
    if (message.method === "initialize") message.params.protocolVersion = revision;
    return send(message, options);
  };
}

async function session(plan) {
  const steps = [];
  const step = async (name, promise) => {
    try {
      const result = await promise;
      steps.push(name);
      return result;
    } catch (error) {
      steps.push(`${name}: ${error.constructor.name}`);
    }
  };
  const client = made(plan);
  const stopped = new Promise((resolve) => {
    client.onclose = resolve;
  });
  if (!plan.bare) handle(client);
  const transport = opened(plan);
  if (SDK === "1") offering(transport, plan.mode);
  let revision = "",
    error = null;
  try {
    await client.connect(transport, limit(plan));
    revision = client.getNegotiatedProtocolVersion?.() ?? transport.protocolVersion ?? plan.mode;
    await tour(client, revision === "2026-07-28", client.getServerCapabilities() ?? {}, plan, step);
  } catch (raised) {
    error = `${raised.constructor.name}: ${raised.message}`;
    // A client that could not connect stops its server after that.
    if (plan.transport === "stdio") await Promise.race([stopped, sleep(STOP_MS)]);
  }
  try {
    await transport.terminateSession?.();
  } catch {
    steps.push("DELETE refused");
  }
  await client.close();
  return { name: plan.name, revision, steps, error };
}

function limit({ timeout }) {
  return timeout === undefined ? {} : { timeout: timeout * 1000 };
}

async function tour(client, modern, offered, plan, step) {
  if (offered.logging && !modern) await step("logging/setLevel", client.setLoggingLevel("debug"));
  if (offered.tools) {
    const listed = await step("tools/list", client.listTools(undefined, limit(plan)));
    const names = (listed?.tools ?? []).map(({ name }) => name);
    for (const [name, args, how] of plan.calls)
      if (names.includes(name) || how === "unknown") await call(client, name, args, how, step, limit(plan));
  }
  if (offered.prompts) {
    const listed = await step("prompts/list", client.listPrompts());
    for (const { name, arguments: wanted } of (listed?.prompts ?? []).slice(0, 2)) {
      const args = Object.fromEntries((wanted ?? []).map((argument) => [argument.name, "Ada"]));
      await step(`prompts/get ${name}`, client.getPrompt({ name, arguments: args }));
    }
  }
  if (offered.resources) {
    const listed = await step("resources/list", client.listResources());
    await step("resources/templates/list", client.listResourceTemplates());
    const uris = (listed?.resources ?? []).slice(0, 2).map(({ uri }) => uri);
    const missing = plan.faultless ? [] : ["demo://nothing"];
    for (const uri of [...uris, ...missing]) await step(`resources/read ${uri}`, client.readResource({ uri }));
    if (uris.length && offered.resources.subscribe) {
      if (modern) {
        const listening = await step("subscriptions/listen", client.listen({ resourceSubscriptions: [uris[0]] }));
        await step("tools/list", client.listTools());
        await listening?.close();
      } else {
        await step("resources/subscribe", client.subscribeResource({ uri: uris[0] }));
        await step("resources/unsubscribe", client.unsubscribeResource({ uri: uris[0] }));
      }
    }
  }
  if (offered.completions) {
    const ref = { type: "ref/prompt", name: plan.completed ?? "greet" };
    await step("completion/complete", client.complete({ ref, argument: { name: "style", value: "p" } }));
  }
  if (!modern) await step("ping", client.ping(limit(plan)));
}

async function call(client, name, args, how, step, limits) {
  const stop = new AbortController();
  const options =
    how === "progress" || how === "cancel"
      ? { ...limits, signal: stop.signal, onprogress: () => how === "cancel" && stop.abort() }
      : limits;
  if (how === "later") await sleep(LATER_MS);
  const timer = how === "cancel" && setTimeout(() => stop.abort(), QUIET_MS);
  const request = { name, arguments: args };
  const called = SDK === "2" ? client.callTool(request, options) : client.callTool(request, undefined, options);
  await step(`tools/call ${name}`, called);
  clearTimeout(timer);
}

const plans = (await text(process.stdin))
  .split("\n")
  .filter(Boolean)
  .map((line) => JSON.parse(line));
const next = plans[Symbol.iterator]();
async function work() {
  for (const plan of next) {
    const late = new Promise((resolve) => {
      setTimeout(() => resolve({ name: plan.name, revision: "", steps: [], error: "timeout" }), SESSION_MS).unref();
    });
    console.log(JSON.stringify(await Promise.race([session(plan), late])));
  }
}
await Promise.all(Array.from({ length: AT_ONCE }, work));
process.exit(0);
