/**
 * What is live on the hub's pages, in a real browser: `node live-reader.mjs CHROMIUM URL PICTURES TOLD`, where TOLD is JSON: cookies of
 * who is signed in, and a key. Prints one JSON object with what was seen.
 */
import { openBrowser } from "./browser.mjs";

const [executablePath, url, pictures, told] = process.argv.slice(2);
const { cookies, key } = JSON.parse(told);
const { open, look, noted, close } = await openBrowser(executablePath, url, pictures);
const ROOM = "stuck";
const WINDOWS = 6;
const TABS = ["", "/timeline", "/waits", "/messages", "/drive", "/ports", "/checkpoints", "/agents/alice"];
const seen = {};

const api = async (method, path, body) => {
  const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
  const response = await fetch(url + path, { method, headers, ...(body ? { body: JSON.stringify(body) } : {}) });
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`);
  return await response.json();
};
const ask = (source, destination) =>
  api("POST", `/v1/rooms/${ROOM}/messages`, { source, destination, kind: "request", payload: "the schema" });
await api("POST", "/v1/rooms", { room_id: ROOM });
for (const agent of ["alice", "bob"]) await api("GET", `/v1/rooms/${ROOM}/messages?agent_id=${agent}`);

const first = await open({ reducedMotion: "reduce" });
await first.context().addCookies(cookies.map(([name, value]) => ({ name, value, url })));
const pages = [first];
for (let n = 1; n < WINDOWS; n++) pages.push(await first.context().newPage());
for (const [n, page] of pages.entries()) {
  await page.goto(`${url}/rooms/${ROOM}${TABS[n]}`);
  await page.locator(".state.live").waitFor();
}
// A seventh window, while each of six follows its room.
const seventh = await first.context().newPage();
const began = performance.now();
await seventh.goto(`${url}/rooms/${ROOM}/waits`);
await seventh.locator(".state.live").waitFor();
seen.seventh_ms = performance.now() - began;
await seventh.close();

// A deadlock, on every tab of its room.
for (const path of TABS.slice(WINDOWS)) {
  const page = await first.context().newPage();
  await page.goto(`${url}/rooms/${ROOM}${path}`);
  await page.locator(".state.live").waitFor();
  pages.push(page);
}
const asked = await ask("alice", "bob");
await pages[0].locator('td[data-label="Waits for"] .state.wait').waitFor();
const shown = Promise.all(pages.map((page) => page.locator(".ring[role=alert]").waitFor()));
await ask("bob", "alice");
const stuckAt = performance.now();
await shown;
seen.deadlock_ms = performance.now() - stuckAt;
seen.sentences = await Promise.all(pages.map((page) => page.locator(".ring[role=alert] p").first().textContent()));
seen.waiting = await pages[0].locator("dl.numbers div", { hasText: "Waiting" }).locator("dd").textContent();
seen.waits_for = await pages[0].locator('td[data-label="Waits for"]').allTextContents();
seen.lanes = await pages[1].locator(".timeline .span.open").count();
for (const [n, name] of [
  [0, "room-deadlock"],
  [1, "timeline-deadlock"],
])
  await look(pages[n], name);
await api("POST", `/v1/rooms/${ROOM}/messages/${asked.message_id}/reply`, { source: "bob", payload: 1 });
await Promise.all(pages.map((page) => page.locator(".ring[role=alert]").waitFor({ state: "detached" })));
seen.noted = noted;
await close();
console.log(JSON.stringify(seen));
