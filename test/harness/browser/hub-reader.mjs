/**
 * The hub in a real browser: `node hub-reader.mjs CHROMIUM URL PICTURES TOLD`, where TOLD is JSON: cookies of who is signed in, a key, the
 * pages' paths by name, and the calls that make what they show. What happens in the service meanwhile is done by its API with the key, as
 * an agent would; what only its operator can do is asked for by a line, and has been done when a line comes back. Prints as its last line one JSON
 * object with what was seen.
 */
import { createInterface } from "node:readline";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { openBrowser } from "./browser.mjs";
import { pressControls } from "./press-controls.mjs";

const [executablePath, url, pictures, told] = process.argv.slice(2);
const { cookies, key, paths, calls } = JSON.parse(told);
const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const operator = async (does) => {
  console.log(does);
  await lines.next();
};
const { open, look, noted, close } = await openBrowser(executablePath, url, pictures);
const seen = { asked: [], pressed: 0, unpressed: [], dialogs: [], late: [] };

const api = async (method, path, body) => {
  const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
  const response = await fetch(url + path, { method, headers, ...(body ? { body: JSON.stringify(body) } : {}) });
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`);
  return await response.json();
};

const page = await open({ reducedMotion: "reduce" });
await page.context().addCookies(cookies.map(([name, value]) => ({ name, value, url })));
page.on("request", (request) => {
  const { pathname } = new URL(request.url());
  if (request.method() !== "GET") seen.asked.push(`${request.method()} ${pathname}`);
});
// Streams of events that are open, by the frames of the page's WebSocket.
const openStreams = new Set();
let streamsBegun = 0;
let sockets = 0;
page.on("websocket", (socket) => {
  const n = sockets++;
  const over = (id) => openStreams.delete(`${n} ${id}`);
  socket.on("framesent", ({ payload }) => {
    const { op, id, path } = JSON.parse(payload);
    if (op === "close") over(id);
    if (op !== "open" || !/\/events(?:\?|$)/.test(path)) return;
    openStreams.add(`${n} ${id}`);
    streamsBegun++;
  });
  socket.on("framereceived", ({ payload }) => {
    if (typeof payload !== "string" || !payload.startsWith("{")) return;
    const { id, type } = JSON.parse(payload);
    if (type === "ended") over(id);
  });
  socket.on("close", () => {
    for (const each of [...openStreams]) if (each.startsWith(`${n} `)) openStreams.delete(each);
  });
});
// A page that is left takes its socket along, which is reported by no event.
page.on("request", (request) => {
  if (request.isNavigationRequest() && request.frame() === page.mainFrame()) openStreams.clear();
});
page.on("dialog", (dialog) => {
  seen.dialogs.push(dialog.message());
  void dialog.dismiss();
});
const loaded = new Set();
page.on("request", (request) => {
  const { pathname } = new URL(request.url());
  if (pathname.startsWith("/ui/")) loaded.add(pathname);
});
const isLive = () => page.locator(".state.live").waitFor({ timeout: 10_000 });

// A person who has just signed up: each step ticks by itself when it has happened.
await page.goto(`${url}/`);
await isLive();
const steps = () => page.locator(".steps > li.is-done b").allTextContents();
const ticked = (n) => page.waitForFunction((n) => document.querySelectorAll(".steps > li.is-done").length >= n, n);
await ticked(1);
seen.steps = [await steps()];
// What a browser loads for the first page, as it comes over TLS.
const packed = async (path) => (await fetch(url + path, { headers: { "accept-encoding": "br" } })).headers;
const sizes = await Promise.all([...loaded].map(async (path) => Number((await packed(path)).get("content-length"))));
seen.first_page = { files: sizes.length, bytes: sizes.reduce((sum, each) => sum + each, 0) };
await page.screenshot({ path: `${pictures}/hub-first-steps.png` });
const client = new Client({ name: "walker", version: "1" });
await client.connect(
  new StreamableHTTPClientTransport(new URL(`${url}/mcp`), {
    requestInit: { headers: { authorization: `Bearer ${key}` } },
  }),
);
await ticked(3);
seen.steps.push(await steps());
await client.callTool({ name: "health", arguments: {} });
await client.callTool({ name: "usage", arguments: {} });
await ticked(4);
seen.steps.push(await steps());
await client.close();
await page.getByRole("button", { name: "Skip setup" }).click();
await page.getByRole("heading", { name: "Recent failures" }).waitFor();

await api("POST", "/v1/rooms", { room_id: "seen" });
for (const [method, path, body] of calls) await api(method, path, body);
await operator("take snapshots");

for (const [name, path] of Object.entries(paths)) {
  await page.goto(url + path);
  await page.waitForFunction(
    () => document.querySelector("main h1") && !document.querySelector("main .loading"),
    null,
    {
      timeout: 10_000,
    },
  );
  await look(page, `hub-${name}`);
  const { pressed, unpressed } = await pressControls(page);
  seen.pressed += pressed;
  seen.unpressed.push(...unpressed);
}

// A room that is made of another says of which, and as of when; the way there is a link.
await page.goto(url + paths.forked);
await page.getByText("Made of room").getByRole("link").last().click();
await page.locator("tr.marked").waitFor({ timeout: 10_000 });
seen.lineage = await page.locator("tr.marked a").allTextContents();
seen.lines = await page.locator("main .ask code").allTextContents();

// By keyboard alone.
await page.goto(`${url}/`);
await isLive();
await page.keyboard.press("g");
await page.keyboard.press("r");
await page.waitForURL(`${url}/rooms`);
await page.locator("[data-row]").first().waitFor();
await page.keyboard.press("/");
await page.keyboard.type("seen");
await page.keyboard.press("Escape");
await page.keyboard.press("j");
await page.keyboard.press("Enter");
await page.waitForURL(`${url}/rooms/seen`);
await page.keyboard.press("?");
await page.locator("dialog[open] kbd").first().waitFor();
seen.keys = await page.locator("dialog[open] kbd").count();
await page.keyboard.press("Escape");
seen.focus_after_going = await page.evaluate(() => document.activeElement?.id ?? "");

// What happens is seen as it happens.
await page.goto(`${url}/rooms`);
await isLive();
const madeAt = performance.now();
await api("POST", "/v1/rooms", { room_id: "just-made" });
await page.getByText("just-made").waitFor();
seen.room_seen_ms = performance.now() - madeAt;

// A tab that nobody sees has no stream, and is up to date as soon as it is seen.
const hidden = { before: openStreams.size };
const session = await page.context().newCDPSession(page);
const hide = (isHidden) =>
  page.evaluate((isHidden) => {
    Object.defineProperty(document, "hidden", { configurable: true, get: () => isHidden });
    document.dispatchEvent(new Event("visibilitychange"));
  }, isHidden);
await hide(true);
await page.getByText("paused while hidden").waitFor();
for (let n = 0; n < 50 && openStreams.size > 0; n++) await new Promise((resolve) => setTimeout(resolve, 100));
const begunBefore = streamsBegun;
await api("POST", "/v1/rooms", { room_id: "unseen" });
hidden.rooms = await page.getByText("unseen", { exact: true }).count();
hidden.open = openStreams.size;
hidden.begun = streamsBegun - begunBefore;
await hide(false);
await page.getByText("unseen", { exact: true }).waitFor();
hidden.after = openStreams.size;
seen.hidden = hidden;

// An idle tab: what it takes of the processor in five seconds, and what it asks.
// Of its own processor time: others use the processor too.
await session.send("Performance.enable", { timeDomain: "threadTicks" });
const metrics = async () => {
  const { metrics } = await session.send("Performance.getMetrics");
  return metrics.find(({ name }) => name === "TaskDuration").value;
};
const quiet = [];
let askedAt = performance.now();
page.on("request", (request) => {
  askedAt = performance.now();
  quiet.push(request.url());
});
// What the last event made old is asked for once more at most, a second later.
while (performance.now() - askedAt < 2000) await new Promise((resolve) => setTimeout(resolve, 100));
// The pages before this one lie in the same process: what is collected of them is none of its work.
await session.send("HeapProfiler.collectGarbage");
quiet.length = 0;
const taskBefore = await metrics();
await new Promise((resolve) => setTimeout(resolve, 5000));
seen.idle_busy = (await metrics()) - taskBefore;
// Who begins to wait leaves no record: rooms at a glance are asked for again.
seen.idle_asked = quiet.filter((asked) => new URL(asked).pathname !== "/v1/overview/rooms").length;
seen.idle_glances = quiet.length - seen.idle_asked;

// The service is restarted: the page says that it is cut off, goes on by itself, and has missed nothing.
await operator("stop");
await page.getByText("reconnecting").waitFor({ timeout: 10_000 });
await operator("start");
await api("POST", "/v1/rooms", { room_id: "meanwhile" });
await page.getByText("meanwhile", { exact: true }).waitFor({ timeout: 30_000 });
await isLive();

// A laptop that sleeps for an hour: its clock jumps, its connection is cut, and the service is another one when it wakes.
const sleeper = await open({ reducedMotion: "reduce" });
await sleeper.context().addCookies(await page.context().cookies());
await sleeper.clock.install();
await sleeper.goto(`${url}/rooms`);
await sleeper.locator(".state.live").waitFor({ timeout: 10_000 });
await sleeper.getByText("just-made", { exact: true }).waitFor({ timeout: 10_000 });
await sleeper.context().setOffline(true);
await operator("stop");
await operator("start");
await api("POST", "/v1/rooms", { room_id: "while-asleep" });
await sleeper.clock.fastForward("01:00:00");
await sleeper.getByText(/reconnecting, 1 h.* behind/).waitFor({ timeout: 10_000 });
seen.shown_asleep = await sleeper.getByText("just-made", { exact: true }).count();
await sleeper.context().setOffline(false);
await sleeper.getByText("while-asleep", { exact: true }).waitFor({ timeout: 30_000 });
await sleeper.locator(".state.live").waitFor({ timeout: 10_000 });
await sleeper.context().close();
await isLive();

// First paint, beside a page that has nothing in it.
const paints = { hub: [], bare: [] };
for (let n = 0; n < 20; n++) {
  for (const [name, path] of [
    ["hub", "/rooms"],
    ["bare", "/docs"],
  ]) {
    await page.goto(url + path, { waitUntil: "load" });
    const paint = await page.evaluate(
      () =>
        new Promise((resolve) => {
          const found = () => performance.getEntriesByName("first-contentful-paint")[0]?.startTime;
          const look = () => (found() === undefined ? requestAnimationFrame(look) : resolve(found()));
          look();
        }),
    );
    paints[name].push(paint);
  }
}
const median = (values) => values.sort((one, other) => one - other)[Math.floor(values.length / 2)];
seen.paint_ms = { hub: median(paints.hub), bare: median(paints.bare) };

// The session ends elsewhere: what is shown stays, and says so.
await page.goto(`${url}/rooms`);
await isLive();
await page.getByText("just-made", { exact: true }).waitFor();
await operator("sign out");
await page.getByText("You are signed out").waitFor({ timeout: 10_000 });
seen.shown_after = await page.getByText("just-made").count();

await close();
process.stdin.destroy();
console.log(JSON.stringify({ ...seen, ...noted }));
