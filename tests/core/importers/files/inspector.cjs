// Uses the web client of the MCP Inspector as a person does, in a headless Chromium, and prints what its Export button
// saves:
//
//     chromium --headless=new --remote-debugging-port=9222 about:blank &
//     node tests/core/imports/files/inspector.cjs INSPECTOR-URL Protocol|Network
//
// INSPECTOR-URL is what `mcp-inspector --web -- COMMAND` prints. Connects, calls the tool `slow`, saves the tab.
const WebSocket = require('../../../../.peers/node_modules/ws');
const http = require('http');

const BROWSER = 'http://127.0.0.1:9222';
const [url, tab] = process.argv.slice(2);

const put = (address) =>
  new Promise((resolve, reject) => {
    const request = http.request(address, { method: 'PUT' }, (response) => {
      let text = '';
      response.on('data', (chunk) => (text += chunk)).on('end', () => resolve(text));
    });
    request.on('error', reject).end();
  });

// Runs in the page.
const within = `
  const make = URL.createObjectURL.bind(URL);
  window.saved = new Promise((resolve) => {
    URL.createObjectURL = (blob) => {
      if (blob.type === 'application/json') resolve(blob.text()); // A worker is made of one, too.
      return make(blob);
    };
  });
  window.found = async (selector, text) => {
    for (let tries = 0; tries < 200; tries++) {
      const all = [...document.querySelectorAll(selector)];
      const fitting = all.filter((each) => text.test((each.innerText || each.value || each.ariaLabel || '').trim()));
      if (fitting.length) return fitting.at(-1);
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    throw new Error('no ' + selector + ' ' + text);
  };
  window.said = (text) => found('body', text);
`;

(async () => {
  const page = JSON.parse(await put(`${BROWSER}/json/new?${encodeURIComponent(url)}`));
  const socket = new WebSocket(page.webSocketDebuggerUrl);
  await new Promise((resolve) => socket.on('open', resolve));
  let number = 0;
  const run = (expression) =>
    new Promise((resolve, reject) => {
      const id = ++number;
      socket.on('message', function answer(data) {
        const message = JSON.parse(data);
        if (message.id !== id) return;
        socket.off('message', answer);
        const { result, exceptionDetails } = message.result;
        exceptionDetails ? reject(new Error(exceptionDetails.exception.description)) : resolve(result.value);
      });
      const params = { expression, awaitPromise: true, returnByValue: true };
      socket.send(JSON.stringify({ id, method: 'Runtime.evaluate', params }));
    });
  await new Promise((resolve) => setTimeout(resolve, 2000)); // Until the page is the Inspector's.
  await run(within);
  await run("found('input[type=checkbox]', /./).then((each) => each.click())");
  await run('said(/templates\\/list/i)');
  await run("found('input[type=radio]', /^tools$/i).then((each) => each.click())");
  await run("found('button', /^slow$/).then((each) => each.click())");
  await run(`found('input', /^$/).then((each) => {
    const steps = [...document.querySelectorAll('input')].find((one) => /steps/i.test(one.id + one.name + one.labels?.[0]?.innerText));
    Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, 'value').set.call(steps, '2');
    steps.dispatchEvent(new Event('input', { bubbles: true }));
  })`);
  await run("found('button', /^(execute|run|call)/i).then((each) => each.click())");
  await run('said(/2 steps/)');
  await run(`found('input[type=radio]', /^${tab}$/i).then((each) => each.click())`);
  await new Promise((resolve) => setTimeout(resolve, 500));
  await run("found('button', /^Export$/).then((each) => each.click())");
  process.stdout.write(await run('saved'));
  process.exit(0);
})().catch((error) => {
  process.stderr.write(`inspector.cjs: ${error.message}\n`);
  process.exit(1);
});
