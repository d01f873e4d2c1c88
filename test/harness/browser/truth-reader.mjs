/**
 * Whether pages say what is so, in a real browser: `node truth-reader.mjs CHROMIUM URL PICTURES TOLD`, where TOLD is JSON: cookies of who
 * is signed in, a key, and the address of the pages. What only the operator can do is asked for by a line, and has been done when a line
 * comes back. Prints as its last line one JSON object with what was seen.
 */
import { createInterface } from "node:readline";
import { openBrowser } from "./browser.mjs";

const [executablePath, , pictures, told] = process.argv.slice(2);
const { cookies, key, url } = JSON.parse(told);
const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const operator = async (does) => {
  console.log(does);
  return JSON.parse((await lines.next()).value);
};
const { open, look, noted, close } = await openBrowser(executablePath, url, pictures);
const seen = {};
const OWNER = "Owner";

const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
const call = (method, path, body) =>
  fetch(url + path, { method, headers, ...(body ? { body: JSON.stringify(body) } : {}) });
const api = async (method, path, body) => {
  const response = await call(method, path, body);
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`);
  return await response.json();
};

// A link that is pasted into the tab of an old one, of which only the part behind the # differs.
const invited = await open();
const link = new URL(await operator("make a link"));
await invited.goto(`${url}${link.pathname}#${"x".repeat(43)}`);
await invited.getByText("not valid").first().waitFor();
await invited.evaluate((hash) => {
  location.hash = hash;
}, link.hash);
await invited.locator("input[type=password]").first().waitFor();
seen.pasted = await invited.locator("h1").textContent();
await invited.context().close();

const page = await open({ reducedMotion: "reduce" });
await page.context().addCookies(cookies.map(([name, value]) => ({ name, value, url })));
const isLive = () => page.locator("header .state.live").waitFor();
const texts = (selector) => page.locator(selector).allTextContents();

// Rooms that ended, one after another, of which one has no drive any more; calls that end in another order than they began; and
// failures, of which one is only that a page was looked at.
for (const room of ["first", "second", "third"]) await api("POST", "/v1/rooms", { room_id: room });
await api("POST", "/v1/rooms", { room_id: "group", labels: { team: "search" } });
const late = { barrier_id: "late", agent_id: "a", parties: 2, timeout_ms: 4000 };
const slow = call("POST", "/v1/rooms/group/barriers", late);
for (const room of ["first", "second", "third"]) await api("DELETE", `/v1/rooms/${room}?drive=delete`);
await call("DELETE", "/v1/rooms/never-was");
for (let times = 0; times < 3; times++) await call("POST", "/v1/rooms", { room_id: "group", labels: { again: "1" } });
await slow;
await page.goto(`${url}/`);
await page.getByRole("button", { name: "Skip setup" }).click();
await page.goto(`${url}/rooms/also-never`);
await page.getByText("no room of this name").waitFor();
seen.tabs_of_nothing = await page.locator("nav.tabs").count();
await page.goto(`${url}/rooms/group/agents/nobody`);
await page.getByText("never had an agent").waitFor();
seen.tabs_of_nobody = await page.locator("nav.tabs").count();
await look(page, "agent-nobody");
await api("POST", "/v1/rooms/group/messages", { source: "nobody", destination: "nobody", payload: "here" });
await page.locator("nav.tabs").waitFor();

await page.goto(`${url}/rooms/third/drive`);
await page.getByText("room was destroyed").waitFor();
seen.drive = await page.locator("main").textContent();

await page.goto(`${url}/rooms?state=destroyed`);
await page.locator("[data-row]").first().waitFor();
seen.ended = { rows: await texts("tbody [data-row]"), columns: await texts("thead th") };

await page.goto(`${url}/`);
await isLive();
await page.locator("table code").first().waitFor();
await page.waitForLoadState("networkidle");
seen.failures = await page.locator("table code").allTextContents();
seen.outcomes = await texts('td[data-label="Outcome"]');

await page.goto(`${url}/audit`);
await page.locator("td.when time").first().waitFor();
seen.times = await page
  .locator("td.when time")
  .evaluateAll((all) => all.map((each) => Date.parse(each.getAttribute("datetime"))));

await page.goto(`${url}/audit?event=user.`);
await page.locator("td.who", { hasText: OWNER }).first().waitFor();
seen.people = await texts("td.who");

// What moves while a page loads, as browsers measure it.
seen.shifts = {};
for (const path of ["/", "/rooms", "/rooms/group", "/rooms/group/timeline", "/audit", "/usage"]) {
  await page.goto(url + path);
  await isLive();
  await page.waitForLoadState("networkidle");
  seen.shifts[path] = await page.evaluate(
    () =>
      new Promise((resolve) => {
        let sum = 0;
        new PerformanceObserver((list) => {
          for (const each of list.getEntries()) if (!each.hadRecentInput) sum += each.value;
        }).observe({ type: "layout-shift", buffered: true });
        requestAnimationFrame(() => setTimeout(() => resolve(sum)));
      }),
  );
}

// The rail's foot is seen on long pages, wherever they are scrolled to.
const isFootSeen = () =>
  page.evaluate(() => {
    const { top, bottom } = document.querySelector("nav .foot").getBoundingClientRect();
    return top >= 0 && bottom <= innerHeight;
  });
seen.foot = {};
for (const path of ["/audit", "/prompts", "/account", "/billing"]) {
  await page.goto(url + path);
  await page.locator("main h1").waitFor();
  await page.evaluate(() => {
    document.querySelector("main").style.minHeight = "4000px";
  });
  const above = await isFootSeen();
  await page.evaluate(() => scrollTo(0, 2000));
  seen.foot[path] = [above, await isFootSeen()];
}

// Colours that are chosen in the hub are those of every page, from its first byte on; and the keys work there.
await page.goto(`${url}/rooms`);
await isLive();
for (let n = 0; n < 3 && !(await page.getByText("Colours: dark").count()); n++)
  await page.getByRole("button", { name: /^Colours/ }).click();
seen.dark = {};
for (const path of ["/rooms", "/account", "/account/keys", "/prompts", "/billing", "/docs"]) {
  const response = await page.goto(url + path);
  seen.dark[path] = [
    /<html[^>]* data-colours="dark"/.test(await response.text()),
    await page.evaluate(() => getComputedStyle(document.body).backgroundColor),
  ];
}
seen.docs = [
  await page.evaluate(() => getComputedStyle(document.documentElement).colorScheme),
  await page.locator("button.theme").textContent(),
];
await page.goto(`${url}/account`);
await page.keyboard.press("g");
await page.keyboard.press("r");
await page.waitForURL(`${url}/rooms`);
await page.goto(`${url}/account`);
await page.getByRole("button", { name: "Colours: dark" }).click();
await page.goto(`${url}/rooms`);
seen.system_again = await page.evaluate(() => document.documentElement.dataset.colours ?? "system");

// A form that was refused: what was typed is there, and the error at its field, which has the focus.
await page.goto(`${url}/account/keys`);
const typed = "k".repeat(129);
await page.locator("#name").evaluate((input) => input.removeAttribute("maxlength"));
await page.locator("#name").fill(typed);
await page.locator("form:has(#name) button.main").click();
await page.locator("[aria-invalid=true]").waitFor();
seen.form = await page.evaluate(() => {
  const input = document.querySelector("[aria-invalid=true]");
  return {
    name: input.id,
    value: input.value,
    has_focus: document.activeElement === input,
    said: document.getElementById(input.getAttribute("aria-describedby").split(" ").at(-1)).textContent,
  };
});
await look(page, "form-refused");

// The service ends in order and starts again: no page says that anything has ended, and one that was opened meanwhile comes by itself.
await page.goto(`${url}/rooms/group`);
await isLive();
await page.evaluate(() => {
  globalThis.badges = [];
  new MutationObserver(() => badges.push(document.querySelector("header .push")?.textContent)).observe(document.body, {
    subtree: true,
    childList: true,
    characterData: true,
  });
});
await operator("stop");
await page.getByText("reconnecting").waitFor();
seen.badges = await page.evaluate(() => [...new Set(badges)]);
await page.getByRole("link", { name: "Waits", exact: true }).click();
await page.getByText("could not be loaded").waitFor();
await operator("start");
await page.locator("main").getByText("late").first().waitFor();

await close();
process.stdin.destroy();
console.log(JSON.stringify({ ...seen, ...noted }));
