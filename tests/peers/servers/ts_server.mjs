// A server on the TypeScript SDK 2, with the tools of sdk_server.py.
//
//     node tests/peers/servers/ts_server.mjs [--port N [--json] [--modern] [--changes]]
//
// With --port it serves streamable HTTP: 2026-07-28, and older revisions without sessions, or not at all (--modern).
// --changes adds a tool that updates a resource.

import { createServer } from "node:http";
import { createRequire } from "node:module";
import { parseArgs } from "node:util";

// This file is outside the folder in which its packages are installed.
const require = createRequire(new URL("../../../.peers/package.json", import.meta.url));
const { McpServer, ResourceTemplate, createMcpHandler, inputRequired } = require("@modelcontextprotocol/server");
const { serveStdio } = require("@modelcontextprotocol/server/stdio");
const z = require("zod");

const MODERN = "2026-07-28";
const text = (value) => ({ content: [{ type: "text", text: value }] });

function made() {
  const capabilities = { logging: {}, resources: { subscribe: true, listChanged: true } };
  const server = new McpServer(
    { name: "ts-peer", version: "1.0.0" },
    { capabilities, instructions: "A test server with one tool for each feature." },
  );
  if (!("subscribed" in server)) {
    server.server.setRequestHandler("resources/subscribe", () => ({}));
    server.server.setRequestHandler("resources/unsubscribe", () => ({}));
  }
  const tool = (name, description, inputSchema, callback, more = {}) =>
    server.registerTool(name, { description, inputSchema: z.object(inputSchema), ...more }, callback);
  tool("echo", "Give the text back.", { text: z.string() }, ({ text: given }) => text(given));
  tool(
    "add",
    "Add two integers.",
    { a: z.int(), b: z.int() },
    ({ a, b }) => ({
      ...text(JSON.stringify({ total: a + b })),
      structuredContent: { total: a + b },
    }),
    { outputSchema: z.object({ total: z.int() }) },
  );
  tool("slow", "Take some steps and report each one.", { steps: z.int() }, async ({ steps }, context) => {
    for (let step = 1; step <= steps; step++) await report(context, step, steps);
    return text(`${steps} steps`);
  });
  tool("hang", "Report one step and then wait to be cancelled.", {}, async (_, context) => {
    await report(context, 1, 2);
    await new Promise((resolve) => context.mcpReq.signal.addEventListener("abort", resolve));
    return text("cancelled");
  });
  tool("fail", "Fail as a tool should.", {}, () => ({ ...text("it was asked to fail"), isError: true }));
  tool("log", "Send the text as a log message.", { text: z.string() }, async ({ text: given }, context) => {
    await context.mcpReq.log("info", given);
    return text("logged");
  });
  tool("ask", "Ask the user.", { question: z.string() }, async ({ question }, context) => {
    const requestedSchema = { type: "object", properties: { answer: { type: "string" } }, required: ["answer"] };
    const form = { message: question, requestedSchema };
    const asked = () => inputRequired({ inputRequests: { answer: inputRequired.elicit(form) } });
    const reply = isModern(context) ? context.mcpReq.inputResponses?.answer : await context.mcpReq.elicitInput({ mode: "form", ...form });
    return reply ? text(reply.content?.answer ?? `no answer: ${reply.action}`) : asked();
  });
  tool("sample", "Ask the client's model.", {}, async (_, context) => {
    const message = { role: "user", content: { type: "text", text: "Say something." } };
    const params = { messages: [message], maxTokens: 20 };
    const reply = isModern(context) ? context.mcpReq.inputResponses?.reply : await context.mcpReq.requestSampling(params);
    return reply ? text(reply.content.text) : inputRequired({ inputRequests: { reply: inputRequired.createMessage(params) } });
  });
  if (options.changes)
    tool("change", "Notify subscribers of a resource.", {}, () => {
      handler.notify.resourceUpdated("note://index");
      return text("changed");
    });
  const note = (uri) => ({ contents: [{ uri: uri.href, mimeType: "text/plain", text: "A note." }] });
  server.registerResource("index", "note://index", { mimeType: "text/plain" }, note);
  const template = new ResourceTemplate("note://notes/{name}", { list: undefined });
  server.registerResource("note", template, { mimeType: "text/plain" }, note);
  const argsSchema = z.object({ name: z.string(), style: z.string().optional() });
  server.registerPrompt("greet", { description: "Ask for a greeting.", argsSchema }, ({ name, style }) => ({
    messages: [{ role: "user", content: { type: "text", text: `Greet ${name} in a ${style} way.` } }],
  }));
  return server;
}

const isModern = (context) => context.mcpReq.envelope !== undefined;

async function report({ mcpReq }, progress, total) {
  const progressToken = mcpReq._meta?.progressToken;
  if (progressToken !== undefined) await mcpReq.notify({ method: "notifications/progress", params: { progressToken, progress, total } });
}

const flag = { type: "boolean" };
const { values: options } = parseArgs({ options: { port: { type: "string" }, json: flag, modern: flag, changes: flag } });
let handler;
if (options.port === undefined) serveStdio(made);
else {
  handler = createMcpHandler(made, { responseMode: options.json ? "json" : "auto", legacy: options.modern ? "reject" : "stateless" });
  createServer(async (incoming, outgoing) => {
    const gone = new AbortController();
    outgoing.on("close", () => gone.abort());
    const chunks = [];
    for await (const chunk of incoming) chunks.push(chunk);
    const { method, headers, url } = incoming;
    const body = method === "POST" ? Buffer.concat(chunks) : undefined;
    const request = new Request(`http://${headers.host}${url}`, { method, headers, body, signal: gone.signal });
    const response = await handler.fetch(request);
    outgoing.writeHead(response.status, Object.fromEntries(response.headers));
    try {
      for await (const chunk of response.body ?? []) outgoing.write(chunk);
    } catch (error) {
      if (!gone.signal.aborted) throw error;
    }
    outgoing.end();
  }).listen(Number(options.port), "127.0.0.1");
}
