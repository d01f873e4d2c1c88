/**
 * The pages of a service of two hosts, in a real browser: `node hosts-reader.mjs CHROMIUM URL PICTURES TOLD`, where TOLD is JSON: cookies
 * of an owner, a key, the names of both hosts, and hostile texts. What only an operator can do is asked for by a line, and has been
 * done when a line comes back. Prints as its last line one JSON object with what was seen.
 */
import { createInterface } from "node:readline";
import { openBrowser } from "./browser.mjs";

const [executablePath, url, pictures, told] = process.argv.slice(2);
const { cookies, key, here, other, hostile } = JSON.parse(told);
const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const operator = async (does) => {
  console.log(does);
  await lines.next();
};
const { open, look, noted, close } = await openBrowser(executablePath, url, pictures);
const seen = { asked: [] };

const api = async (method, path, body) => {
  const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
  const response = await fetch(url + path, { method, headers, ...(body ? { body: JSON.stringify(body) } : {}) });
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`);
  return await response.json();
};

const page = await open({ reducedMotion: "reduce" });
await page.context().addCookies(cookies.map(([name, value]) => ({ name, value, url })));
page.on("request", (request) => {
  if (request.method() !== "GET") seen.asked.push(`${request.method()} ${request.url()}`);
});
page.on("dialog", (dialog) => {
  seen.asked.push(`a dialog: ${dialog.message()}`);
  void dialog.dismiss();
});
const go = async (path) => {
  await page.goto(url + path);
  await page.waitForFunction(() => document.querySelector("main h1") && !document.querySelector("main .loading"));
};
const card = (host) => page.locator(".host-card", { has: page.getByRole("heading", { name: host, exact: true }) });

await api("POST", "/v1/rooms", { room_id: "near", host: here });
await api("POST", "/v1/rooms", { room_id: "far", host: other, labels: { team: "search" } });

// Two that are well: reached by the rail and by keys, with the organization's rooms on each.
await go("/");
await page.locator(".state.live").waitFor();
seen.rail = await page.locator("body > nav > a").allTextContents();
await page.keyboard.press("g");
await page.keyboard.press("o");
await page.waitForURL(`${url}/hosts`);
await card(here).getByRole("link", { name: "near" }).waitFor();
await card(other).getByRole("link", { name: "far" }).waitFor();
seen.well = {
  summary: await page.locator("main .lead").textContent(),
  bars: await page.locator(".host-card .bar").count(),
};

// What a host calls itself is text, whatever it says.
const answer = await api("GET", "/v1/hosts");
const shown = (changes) => ({
  ...answer,
  ...changes,
  items: (changes.items ?? ((items) => items))(answer.items.map((each) => ({ ...each }))),
});
const asIf = async (changes, name = null) => {
  await page.route("**/v1/hosts", (route) => route.fulfill({ json: shown(changes) }));
  await go("/hosts");
  await page.locator(".host-card").first().waitFor();
  if (name) await look(page, name);
  const text = await page.locator("main").textContent();
  await page.unroute("**/v1/hosts");
  return text;
};
const DAY = 86_400_000;
const ago = (ms) => new Date(Date.now() - ms).toISOString();
seen.hostile = await asIf({
  items: ([one, two]) => [
    { ...one, labels: Object.fromEntries(hostile.map((text, n) => [`l${n}`, text.slice(0, 63)])) },
    { ...two, url: "javascript:alert(1)", version: hostile[0], capacity: { ...two.capacity, templates: hostile } },
  ],
});
// Every state at once, each with what to do.
seen.states = await asIf(
  {
    items: ([one, two]) => {
      const tib = 1024 ** 4;
      const full = { memory_mib: { promised: 62_000, total: 65_536 }, cpus: 32, rooms: 140, sandboxes: 180 };
      const big = { ...two.capacity, ...full, disk: { size_bytes: 4 * tib, free_bytes: 0.2 * tib } };
      const as = (host, changes) => ({ ...two, host, is_self: false, since: ago(3 * DAY), capacity: big, ...changes });
      return [
        { ...one, version: "9.9.9", capacity: { ...one.capacity, templates: ["default", "desktop"] } },
        as("host-degraded", { state: "degraded", version: "9.9.9", since: ago(400_000) }),
        as("host-draining", { state: "draining", version: "9.9.9" }),
        as("host-empty", { state: "draining", version: "9.9.9", capacity: { ...big, rooms: 0, sandboxes: 0 } }),
        as("host-silent", {
          state: "unreachable",
          version: "9.9.9",
          labels: { zone: "b", says: hostile[0].slice(0, 63) },
        }),
        as("host-older", { state: "active", version: "9.8.0" }),
        as("host-new", { state: "active", version: null, capacity: null, since: null }),
        as("host-bare", { state: "active", version: "9.9.9", capacity: { ...big, templates: [], disk: null } }),
        as("host-gone", { state: "gone", capacity: null }),
      ];
    },
  },
  "hosts-states",
);
seen.stale = await asIf({ directory_age_seconds: 95 });
// Whoever may not see them is told who may.
const refused = { status: 403, code: "insufficient_scope", title: "no", detail: "no", retryable: false, errors: [] };
await page.route("**/v1/hosts", (route) => route.fulfill({ status: 403, json: refused }));
await go("/hosts");
await page.getByText("Only owners and admins can see hosts.").waitFor();
await page.unroute("**/v1/hosts");

// Rooms say where they are, and can be seen by host.
await go("/rooms");
await page.locator("table.rooms").getByRole("link", { name: other, exact: true }).click();
await page.getByText("Show those of all hosts").waitFor();
await page.getByRole("link", { name: "near", exact: true }).waitFor({ state: "detached" });
seen.filtered = await page.locator("table.rooms .name").allTextContents();

// A room that moves says so, and goes on by itself.
await go("/rooms/far");
await page.locator(".state.live").waitFor();
seen.before = await page.locator("main header").textContent();
const moving = { status: 503, code: "room_moving", title: "moving", detail: "moving", retryable: true, errors: [] };
await page.route("**/v1/rooms/far**", (route) => route.fulfill({ status: 503, json: moving }));
await page.reload();
await page.getByText("moving to another host").waitFor();
await look(page, "hosts-moving");
await page.unroute("**/v1/rooms/far**");
await page.locator(".state.live").waitFor();
await page.getByText("moving to another host").waitFor({ state: "detached" });
await page.getByRole("heading", { name: "Agents" }).waitFor();
await api("POST", "/v1/rooms/far/move", { host: here });
await page.locator("main header").getByRole("link", { name: here, exact: true }).waitFor();
await page.locator(".state.live").waitFor();
await api("POST", "/v1/rooms/far/move", { host: other });
await page
  .locator("main header")
  .getByRole("link", { name: other, exact: true })
  .waitFor({ timeout: 15_000 })
  .catch(async () => {
    throw new Error(String(await page.locator("main").textContent()));
  });

// The other host falls silent: its rooms keep their names, and everything says what to do.
await operator("stop");
await page.getByText("This page resumes automatically as soon as the host answers.").waitFor();
seen.silent_room = await page.locator("main .room-away").textContent();
await look(page, "hosts-room-silent");
await page.getByRole("link", { name: "Hosts", exact: true }).last().click();
await card(other).getByText("unreachable").waitFor();
await card(other).getByRole("link", { name: "far" }).waitFor();
seen.silent = await card(other).textContent();
seen.troubles = await page.locator("main .trouble").count();
await go("/rooms");
await page.getByText("host silent").waitFor();
await look(page, "hosts-rooms-silent");
await close();
console.log(JSON.stringify({ ...seen, ...noted }));
process.stdin.destroy();
