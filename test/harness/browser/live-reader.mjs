/**
 * What is live on the hub's pages, in a real browser: `node live-reader.mjs CHROMIUM URL PICTURES TOLD`, where TOLD is JSON: cookies of
 * who is signed in, a key, the room, the paths of six windows, each with a text that shows that what is live on it has come, and whether
 * a command has failed. Prints one JSON object with what was seen.
 */
import { openBrowser } from "./browser.mjs";

const [executablePath, url, pictures, told] = process.argv.slice(2);
const { cookies, key, room, windows, isFailing } = JSON.parse(told);
const { open, look, noted, close } = await openBrowser(executablePath, url, pictures);
const TABS = ["", "/timeline", "/waits", "/messages", "/drive", "/ports", "/checkpoints", "/agents/alice"];
const seen = {};

const api = async (method, path, body) => {
  const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
  const response = await fetch(url + path, { method, headers, ...(body ? { body: JSON.stringify(body) } : {}) });
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`);
  return await response.json();
};
const ask = (source, destination) =>
  api("POST", `/v1/rooms/${room}/messages`, { source, destination, kind: "request", payload: "the schema" });

const first = await open({ reducedMotion: "reduce" });
const context = first.context();
await context.addCookies(cookies.map(([name, value]) => ({ name, value, url })));
const show = async (page, path) => {
  await page.goto(`${url}/rooms/${room}${path}`);
  await page.locator(".state.live").first().waitFor();
  return page;
};
const timed = async (page, path) => {
  const began = performance.now();
  await show(page, path);
  return performance.now() - began;
};
// What the machine takes for it now, with everything loaded and no other window.
await show(first, "/waits");
seen.alone_ms = await timed(first, "/waits");
const opened = [];
for (const [n, { path, shows }] of windows.entries()) {
  const page = await show(n === 0 ? first : await context.newPage(), path);
  await page.getByText(shows).first().waitFor();
  opened.push(page);
}
// One more window, while each of the others is live.
const seventh = await context.newPage();
seen.seventh_ms = await timed(seventh, "/waits");
await seventh.close();
// Those before it are live still.
seen.live = 0;
for (const page of opened) seen.live += await page.locator("header .state.live").count();

// A deadlock, on every window, and on every tab of its room.
const tabs = [];
for (const path of TABS) tabs.push(await show(await context.newPage(), path));
const askedAt = performance.now();
const asked = await ask("alice", "bob");
await tabs[0].locator('td[data-label="Waits for"] .state.wait').waitFor();
seen.wait_ms = performance.now() - askedAt;
const pages = [...opened, ...tabs];
const shown = Promise.all(pages.map((page) => page.locator(".ring[role=alert]").waitFor()));
await ask("bob", "alice");
const stuckAt = performance.now();
await shown;
seen.deadlock_ms = performance.now() - stuckAt;
seen.sentences = await Promise.all(pages.map((page) => page.locator(".ring[role=alert] p").first().textContent()));
seen.waiting = await tabs[0].locator("dl.numbers div", { hasText: "Waiting" }).locator("dd").textContent();
seen.waits_for = await tabs[0].locator('td[data-label="Waits for"] .state.wait').allTextContents();
seen.memory = await tabs[0].locator('td[data-label="Memory"]').allTextContents();
await tabs[1].locator(".timeline .span.open").nth(1).waitFor();
seen.lanes = await tabs[1].locator(".timeline .span.open").count();
for (const [n, name] of [
  [0, "room-deadlock"],
  [1, "timeline-deadlock"],
])
  await look(tabs[n], name);
await api("POST", `/v1/rooms/${room}/messages/${asked.message_id}/reply`, { source: "bob", payload: 1 });
await Promise.all(pages.map((page) => page.locator(".ring[role=alert]").waitFor({ state: "detached" })));
// A command that failed is among Home's failures, though the call that ran it succeeded.
if (isFailing) {
  await first.goto(`${url}/`);
  await first.getByRole("button", { name: "Skip setup" }).click();
  await first.locator("table .state.bad").first().waitFor();
  seen.failures = await first.locator('td[data-label="Outcome"] .state.bad').allTextContents();
}
seen.noted = noted;
await close();
console.log(JSON.stringify(seen));
