// Recordings of MCP servers in tests of vitest and Jest (mcpspy, docs/vitest.md).

import { spawn } from "node:child_process";
import { once } from "node:events";
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, extname, join } from "node:path";
import { createInterface } from "node:readline";

const MODE = process.env.MCPSPY_RECORD || (/^(|0|false)$/i.test(process.env.CI ?? "") ? "once" : "none");
if (!["none", "once", "all"].includes(MODE)) throw new Error(`MCPSPY_RECORD=${MODE}: unknown mode (use none, once, all)`);

const MISS = /^mcpspy: (not recorded|every recorded answer is used up)/;
const PATIENCE = 10_000; // Milliseconds for a server to end after its client has disconnected.
const POLL = 20;

/**
 * Return the function of a test. It calls `body` with an MCP server, and with the arguments of the test runner.
 *
 * `server` is the command of the real server, as an array, or its URL; without it, nothing is recorded. `mock` contains
 * more options of `mcpspy mock`. A new recording is stored as `file` if the test passes. A test fails if it sends an
 * unrecorded request, even if its code ignores the error.
 */
export function recorded(file, { server, mock = [] }, body) {
  return async (...given) => {
    const files = existing(file);
    const records = server && (MODE === "all" || (MODE === "once" && !files.length));
    if (!records && !files.length) throw new Error(`${file}: no recording (name the server, and set MCPSPY_RECORD=once)`);
    const folder = mkdtempSync(join(tmpdir(), "mcpspy-"));
    const record = ["--record", `${folder}/`];
    const listeners = [];

    /** Return the command for a client on stdio. */
    const command = () => {
      if (records && !Array.isArray(server)) return ["bridge", "--upstream", server, ...record];
      return ["run", ...record, "--", ...(records ? server : ["mcpspy", "mock", ...mock, ...files])];
    };
    /** Return the URL for a client over HTTP. The first call starts the listener. */
    const url = async () => {
      if (records && Array.isArray(server)) {
        throw new Error(`${file}: a command cannot be recorded over HTTP (record it in a test on stdio, or name a URL as server)`);
      }
      const words = records
        ? ["http", "--upstream", server, "--listen", "127.0.0.1:0", ...record]
        : ["mock", ...mock, ...files, "--http", "0"];
      listeners[0] ??= await listen(words);
      return listeners[0].url;
    };

    try {
      await body({ command: "mcpspy", args: command(), url }, ...given);
      for (const listener of listeners) await listener.close();
      const sessions = await ended(folder);
      const missed = records ? [] : sessions.flatMap(({ misses }) => misses);
      missed.push(...listeners.flatMap(({ lines }) => lines.filter((line) => MISS.test(line))));
      if (missed.length) throw new Error([`requests without a recorded response in ${file}`, ...missed].join("\n"));
      if (records && !hasFailed(given[0])) store(sessions, file);
    } finally {
      for (const listener of listeners) await listener.close();
      rmSync(folder, { recursive: true, force: true });
    }
  };
}

/** Return whether vitest knows that the test failed, though its function has returned: a timeout, or `expect.soft`. */
const hasFailed = (context) => Boolean(context?.signal?.aborted || context?.task?.result?.state === "fail");

/** Return the name of file `number` of a recording, as the pytest plugin names them: x.jsonl, x.2.jsonl … */
const numbered = (file, number) => (number === 1 ? file : `${file.slice(0, -extname(file).length)}.${number}${extname(file)}`);

/** Return the files of a recording: more than one if the test started its server more than once. */
function existing(file) {
  const files = [];
  while (existsSync(numbered(file, files.length + 1))) files.push(numbered(file, files.length + 1));
  return files;
}

/** Replace a recording by sessions. Sessions without a message of the server cannot be served. */
function store(sessions, file) {
  const served = sessions.filter(({ lines }) => lines.some((line) => line.from === "server" && line.msg));
  if (!served.length) return;
  mkdirSync(dirname(file), { recursive: true });
  const surplus = existing(file).slice(served.length);
  for (const [index, { path }] of served.entries()) {
    copyFileSync(path, `${file}.new`);
    renameSync(`${file}.new`, numbered(file, index + 1)); // Other workers see a complete file, or none.
  }
  for (const path of surplus) rmSync(path);
}

/** Start mcpspy over HTTP. */
async function listen(words) {
  const listener = spawn("mcpspy", words, { stdio: ["ignore", "ignore", "pipe"] });
  const lines = [];
  const closed = once(listener, "close");
  const url = await new Promise((resolve, reject) => {
    listener.on("error", reject);
    listener.on("exit", () => reject(new Error(lines.join("\n"))));
    createInterface({ input: listener.stderr }).on("line", (line) => {
      lines.push(line);
      const ready = line.match(/^mcpspy: (http:\/\/127\.0\.0\.1:\S+) /);
      if (ready) resolve(ready[1]);
    });
  });
  const close = async () => {
    listener.kill();
    await closed;
  };
  return { url, lines, close };
}

/** Wait for the end of the recorded sessions, and return them in the order of their start. */
async function ended(folder) {
  for (const until = Date.now() + PATIENCE; ; await new Promise((resolve) => setTimeout(resolve, POLL))) {
    const sessions = readdirSync(folder).map((name) => read(join(folder, name)));
    // After an exit that left pipes to other processes, messages follow, and then the end.
    const isEnd = ({ note, left }) => note === "end" || (note === "exit" && !left?.length);
    if (sessions.every(({ lines }) => lines.length && isEnd(lines.at(-1)))) {
      return sessions.sort((one, other) => (one.lines[0].started < other.lines[0].started ? -1 : 1));
    }
    if (Date.now() > until) throw new Error("the server still runs: close the client in the test");
  }
}

/** Return the complete lines of a session, and the errors for unrecorded requests in it. */
function read(path) {
  const text = readFileSync(path, "utf8");
  const complete = text
    .slice(0, text.lastIndexOf("\n") + 1)
    .split("\n")
    .slice(0, -1);
  const lines = complete.map((line) => JSON.parse(line));
  const misses = lines.flatMap(({ msg }) => msg?.error?.message?.match(/^mcpspy mock: .+/) ?? []);
  return { path, lines, misses };
}
