// A server of HTTP/2 only: node http2_server.mjs KEY CERTIFICATE [PORT]. Forwards to a server of HTTP/1.1 on 127.0.0.1,
// or responds with the request. Prints its port.
import fs from "node:fs";
import http from "node:http";
import http2 from "node:http2";

const [key, cert, port] = process.argv.slice(2);
const ofConnection = new Set(["connection", "keep-alive", "transfer-encoding"]);

const forward = (request, response) => {
  const entries = Object.entries(request.headers).filter(([name]) => !name.startsWith(":"));
  const options = { host: "127.0.0.1", port, method: request.method, path: request.url, headers: Object.fromEntries(entries) };
  const onward = http.request(options, (answer) => {
    const kept = Object.entries(answer.headers).filter(([name]) => !ofConnection.has(name));
    response.writeHead(answer.statusCode, Object.fromEntries(kept));
    response.flushHeaders();
    answer.pipe(response);
  });
  request.stream.on("close", () => onward.destroy());
  request.pipe(onward);
};

const respond = (request, response) => {
  if (request.url === "/reset") {
    response.stream.close(http2.constants.NGHTTP2_ENHANCE_YOUR_CALM);
  } else if (request.url === "/refuse") {
    response.writeHead(413).end("too large");
  } else if (request.url === "/size") {
    let size = 0;
    request.on("data", (data) => (size += data.length)).on("end", () => response.end(`${size}`));
  } else if (request.url === "/events") {
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.write("data: 1\n\n");
    request.on("data", (data) => response.write(data)).on("end", () => response.end());
  } else {
    response.setHeader("x-seen", JSON.stringify(request.headers));
    if (request.url === "/last") request.stream.session.close();
    request.pipe(response);
  }
};

const server = http2.createSecureServer({ key: fs.readFileSync(key), cert: fs.readFileSync(cert) }, port ? forward : respond);
server.listen(0, "127.0.0.1", () => console.log(server.address().port));
